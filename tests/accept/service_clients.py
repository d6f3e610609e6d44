"""Clients of the service example, while somebody kills its parts.

service_clients.py SOCKET REQUESTS CLIENTS PAUSE_MS: each client sends `add C N` for N = 1, 2, ...,
each again until it is answered. Prints a JSON object: requests, answered, refusals (answers that were
errors), tries, within_3s, slowest_s, count (the service's, at the end).
"""

import json
import socket
import sys
import threading
import time


class Client(threading.Thread):
    def __init__(self, path, name, requests, pause):
        super().__init__()
        self.path, self.name_, self.requests, self.pause = path, name, requests, pause
        self.times, self.tries, self.refusals, self.count = [], 0, 0, 0
        self.stream = None

    def ask(self, line):
        """The answer to `line`; None if the connection was lost or nothing came in time."""
        self.tries += 1
        try:
            if self.stream is None:
                there = socket.socket(socket.AF_UNIX)
                there.settimeout(5)
                there.connect(self.path)
                self.stream = there.makefile("rw")
            self.stream.write(line + "\n")
            self.stream.flush()
            answer = self.stream.readline()
            if answer.endswith("\n"):
                return answer.split()
        except OSError:
            pass
        self.stream = None
        time.sleep(0.02)
        return None

    def run(self):
        for number in range(1, self.requests + 1):
            began = time.monotonic()
            while True:
                answer = self.ask(f"add {self.name_} {number}")
                if answer is None:
                    continue
                if answer[:2] != [str(self.name_), str(number)]:
                    raise RuntimeError(f"an answer to another request: {answer}")
                if answer[2] != "error":
                    break
                self.refusals += 1
                time.sleep(0.02)
            self.count = int(answer[2])
            self.times.append(time.monotonic() - began)
            time.sleep(self.pause)


def main():
    path, requests, clients, pause = sys.argv[1], *map(int, sys.argv[2:])
    each = requests // clients
    all_ = [Client(path, name, each, pause / 1000) for name in range(clients)]
    for client in all_:
        client.start()
    for client in all_:
        client.join()
    times = [t for client in all_ for t in client.times]
    print(json.dumps({
        "requests": each * clients,
        "answered": len(times),
        "refusals": sum(client.refusals for client in all_),
        "tries": sum(client.tries for client in all_),
        "within_3s": sum(t <= 3 for t in times),
        "slowest_s": max(times, default=0),
        "count": max(client.count for client in all_),
    }))


main()
