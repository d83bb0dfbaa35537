"use strict";
// Moves the payload of a test in a thread of its own. The endpoint counts it, so nothing here does.
const ahead = 4 * 1024 * 1024;  // more of an upload would only wait in the browser
const chunk = new Uint8Array(262144);
for (let at = 0; at < chunk.length; at += 65536) crypto.getRandomValues(chunk.subarray(at, at + 65536));
const senders = [];
let begun = false, opening = 0;

function pump(socket) {
  if (socket.readyState !== 1) return;
  while (socket.bufferedAmount < ahead) socket.send(chunk);
  setTimeout(pump, 4, socket);
}
function open({flow, n, g, url}) {
  const socket = new WebSocket(url);
  let wasOpen = false;
  socket.binaryType = "arraybuffer";
  socket.onmessage = () => {};
  socket.onopen = () => {
    wasOpen = true;
    if (flow === "up" && begun) pump(socket); else if (flow === "up") senders.push(socket);
  };
  socket.onclose = () => { if (!wasOpen) postMessage({flow, n, g}); };
}
function probe(url) {  // a new connection, for its handshake and its first answer: the endpoint measures both
  if (opening >= 8) return;
  const socket = new WebSocket(url);
  socket.binaryType = "arraybuffer";
  opening++;
  socket.onmessage = event => socket.send(event.data);
  socket.onclose = () => { opening--; };
}
onmessage = event => {
  (event.data.open || []).forEach(open);
  if (event.data.begin) {
    begun = true;
    senders.forEach(pump);
    setInterval(probe, 200, event.data.probe);
  }
};
