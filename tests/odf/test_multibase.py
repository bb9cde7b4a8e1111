"""Multibase text is read and written in any thread."""

from __future__ import annotations

import subprocess
import sys

_AT_ONCE = """
import sys, threading
sys.setswitchinterval(1e-6)
from odfbuild.odf.multibase import decode_multibase, encode_multibase
wrong, start = [], threading.Barrier(8)
def work():
    start.wait()
    for name in ("base64url", "base64", "base32", "base32upper", "base58btc"):
        try:
            if decode_multibase(encode_multibase(b"ab", name)) != b"ab":
                wrong.append(name)
        except Exception as error:
            wrong.append(repr(error.__cause__ or error))
threads = [threading.Thread(target=work) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
print(wrong)
"""


def test_encodings_are_used_for_the_first_time_in_several_threads_at_once() -> None:
    for _ in range(8):
        done = subprocess.run(
            [sys.executable, "-c", _AT_ONCE], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == ("[]\n", "")
