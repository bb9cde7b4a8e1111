"""Check a dataset by its signed statements, without odfbuild.

    pip install securesystemslib cryptography
    python check_passport.py FOLDER STATEMENTS DID

FOLDER has the files of the dataset in `data/` and `blocks/`, STATEMENTS is what `odfbuild passport
--format in-toto` wrote, and DID is the identity of the dataset, from a source that you trust.
"""

import hashlib
import json
import sys
from pathlib import Path

from securesystemslib.dsse import Envelope
from securesystemslib.signer import SSlibKey


def check(folder: Path, statements: Path, did: str) -> list[str]:
    # The identity of a dataset is its public key.
    public = {"public": did.removeprefix("did:odf:fed01")}
    key = SSlibKey(did, "ed25519", "ed25519", public)
    wrong, next_record = [], 0
    for number, line in enumerate(statements.read_text().splitlines(), 1):
        try:
            envelope = Envelope.from_dict(json.loads(line))
            envelope.verify([key], threshold=1)
        except Exception as error:
            wrong.append(f"statement {number} is not signed with the key of the dataset: {error}")
            continue
        statement = json.loads(envelope.payload)
        step = statement["predicate"]["buildDefinition"]["externalParameters"]
        if step["firstOffset"] != next_record:
            wrong.append(f"statement {number}: a step before it is missing")
        next_record = step["lastOffset"] + 1
        for subject in statement["subject"]:
            file = folder / subject["name"]
            data = file.read_bytes() if file.is_file() else b""
            for algorithm, digest in subject["digest"].items():
                if hashlib.new(algorithm, data).hexdigest() != digest:
                    wrong.append(f"{subject['name']} does not have the signed {algorithm}")
    print(f"{number} statements about {next_record:,} records, {len(wrong)} wrong")
    return wrong


if __name__ == "__main__":
    found = check(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
    print("\n".join(found), end="\n" if found else "")
    sys.exit(1 if found else 0)
