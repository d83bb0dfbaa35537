"use strict";
// Moves the payload of a test in a thread of its own. The endpoint counts it, so nothing here does.
const ahead = 4 * 1024 * 1024;  // more of an upload would only wait in the browser
const chunk = new Uint8Array(262144);
for (let at = 0; at < chunk.length; at += 65536) crypto.getRandomValues(chunk.subarray(at, at + 65536));
const senders = [];

function pump(socket) {
  if (socket.readyState !== 1) return;
  while (socket.bufferedAmount < ahead) socket.send(chunk);
  setTimeout(pump, 4, socket);
}
onmessage = event => {
  for (const {flow, url} of event.data.open || []) {
    const socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onmessage = () => {};
    socket.onclose = () => postMessage(flow);
    if (flow === "up") senders.push(socket);
  }
  if (!event.data.open) senders.forEach(pump);
};
