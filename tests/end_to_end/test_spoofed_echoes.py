"""An endpoint under a test of latency as a reflector: what it sends to an address that somebody forges."""

import json
import os
import shutil
import subprocess
import sys

import pytest

from .conftest import DEADLINE_S
from .veth_link import VethLink

PORT = 5_214
NEAR, VICTIM, FAR = "198.18.0.1", "198.18.0.3", "198.18.0.2"
# Beside the client: it sees each of its datagrams and sends it again from the victim's address, as it is, with
# another port, and cut or extended. It counts what the victim sends and receives, IP headers included.
ATTACKER = """
import json, random, socket, struct, sys, time

victim, far, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
heard = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
heard.bind(("near0", 3))
heard.settimeout(0.2)
raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
sent = received = copies = answers = 0

def forge(source_port, payload):
    global sent, copies
    length = 28 + len(payload)
    addresses = socket.inet_aton(victim) + socket.inet_aton(far)
    header = struct.pack("!BBHHHBBH", 69, 0, length, 0, 0, 64, 17, 0) + addresses
    raw.sendto(header + struct.pack("!HHHH", source_port, port, 8 + len(payload), 0) + payload, (far, 0))
    sent += length
    copies += 1

print("ready", flush=True)
until = time.monotonic() + float(sys.argv[4])
while time.monotonic() < until:
    try:
        packet, address = heard.recvfrom(65536)
    except TimeoutError:
        continue
    if packet[9] != 17:
        continue
    source, to = packet[12:16], packet[16:20]
    if source == socket.inet_aton(far) and to == socket.inet_aton(victim):
        received += struct.unpack("!H", packet[2:4])[0]
        answers += 1
    elif to == socket.inet_aton(far) and source != socket.inet_aton(victim):
        head = 4 * (packet[0] & 15)
        source_port, to_port = struct.unpack("!HH", packet[head : head + 4])
        payload = packet[head + 8 :]
        if to_port == port:
            garbage = payload[:20] + random.randbytes(len(payload))
            for copy in (payload, payload, payload[:-1], payload + b"x", garbage):
                forge(source_port, copy)
                forge(random.randrange(1024, 65536), copy)
print(json.dumps([sent, received, copies, answers]))
"""


@pytest.mark.every
@pytest.mark.skipif(
    os.geteuid() != 0 or not all(map(shutil.which, ("ip", "nsenter", "unshare"))), reason="needs root and iproute2"
)
def test_forged_sources_get_no_more_bytes_than_were_sent_in_their_name(link: VethLink) -> None:
    """While a test has its probes echoed: copies of each hello and probe, and variants, from another address."""
    for address in (NEAR, VICTIM):
        link.run(link.near, "ip", "addr", "add", f"{address}/29", "dev", "near0")
    link.run(link.far, "ip", "addr", "add", f"{FAR}/29", "dev", "far0")
    endpoint = [*link.far, sys.executable, "-P", "-m", "linkgauge", "endpoint", "--open", "--port", str(PORT)]
    with subprocess.Popen(endpoint, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as serving:
        try:
            assert serving.stdout is not None
            assert serving.stdout.readline()
            words = [*link.near, sys.executable, "-P", "-c", ATTACKER, VICTIM, FAR, str(PORT), "12"]
            with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as attacker:
                assert attacker.stdout is not None
                assert attacker.stdout.readline() == "ready\n"
                test = ["run", f"{FAR}:{PORT}", "--seconds", "3", "--max-rise", "1000", "--json", "--rate", "50M"]
                done = subprocess.run(
                    [*link.near, sys.executable, "-P", "-m", "linkgauge", *test],
                    capture_output=True,
                    text=True,
                    timeout=DEADLINE_S,
                    check=False,
                )
                sent, received, copies, answers = json.loads(attacker.communicate(timeout=DEADLINE_S)[0])
        finally:
            serving.terminate()
    assert done.returncode == 0, done
    sys.stdout.write(f"{copies} forged datagrams of {sent} bytes had {answers} answers of {received} bytes\n")
    assert copies > 100
    assert received <= sent
