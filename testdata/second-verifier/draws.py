"""Which records of a log were drawn to be tried: section "Draws" of docs/format.md. Run with the file of vectors, it says what it finds in each."""

import base64
import hashlib
import json
import sys

import keys
import log
from canonical import parse
from knownlog import Tree
from operatoracts import DRAW_BLOCK, check_draw
from shapes import unbase64
from trust import Witness

MAX_SHARE = 2**32


def trial_of(digest):
    """The chain_id of the trial of a drawn record."""
    value = bytearray(hashlib.sha256(b"jurat/drawn-trial/v1\0" + digest.encode()).digest()[:16])
    value[:6] = bytes(6)
    value[6] = value[6] & 0x0F | 0x70
    value[8] = value[8] & 0x3F | 0x80
    text = value.hex()
    return "trial-" + "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))


def is_drawn(signature, digest, share):
    number = hashlib.sha256(b"jurat/drawn/v1\0" + signature + bytes.fromhex(digest[7:])).digest()
    return int.from_bytes(number, "big") % int(share) == 0


def signatures_of(witness, key, origin, size, root, draws):
    """The witness's valid signatures on the draw of the tree of this size, each once."""
    found = []
    for one in draws:
        if one["size"] != size or one["witness"] != key:
            continue
        signature = unbase64(one["signature"], 64, 64)
        text = f"jurat/draw/v1\n{origin}\n{size}\n".encode() + base64.b64encode(root) + b"\n"
        if signature not in found and keys.is_valid("Ed25519", witness.spki, text, signature):
            found.append(signature)
    return found


def _extend(gaps, first, end, name):
    if gaps and gaps[-1]["to"] == first:
        gaps[-1]["to"] = end
    else:
        gaps.append({"from": first, "to": end, "witness": name})


def _follow(chain, entry, clerks):
    """Only the clerk, whose is the second entry of a trial, seals the judgment that the log counts, about the actor of the record."""
    tag = entry["chain"]
    chain["acts"] = max(chain["acts"], entry["chain_seq"])
    if entry["chain_seq"] == 2:
        clerks[tag] = entry.get("actor")
    if entry.get("subject_seq", 0) > 0 and entry.get("actor") and entry["actor"] == clerks.get(tag):
        chain["about"].add(entry["subject"])


def read(origin, entries, root, witnesses, share, draws, actor=None):
    """What was drawn of the log with these entries, and which draws are missing. witnesses are their keys as text, in the policy's order."""
    known = [(Witness(key), key) for key in witnesses]
    tree, block, chains, clerks, drawn, unknown = Tree(), [], {}, {}, [], 0
    missing, twofold = ({witness.name: [] for witness, _ in known} for _ in range(2))
    for line in entries:
        entry = json.loads(line)
        tree.add(log.leaf_hash(line.encode()))
        block.append(entry)
        if "chain" in entry:
            _follow(chains.setdefault(entry["chain"], {"acts": 0, "about": set()}), entry, clerks)
        if len(block) < DRAW_BLOCK:
            continue
        first, by = tree.size - DRAW_BLOCK, [[] for _ in block]
        for witness, key in known:
            signed = signatures_of(witness, key, origin, tree.size, tree.root(), draws)
            if len(signed) != 1:
                _extend(twofold[witness.name] if signed else missing[witness.name], first, tree.size, witness.name)
            for place, entry in enumerate(block):
                if any(is_drawn(one, entry["payload"], share) for one in signed):
                    by[place].append(witness.name)
        for place, names in enumerate(by):
            digest = block[place]["payload"]
            if names and actor and "actor" not in block[place]:
                unknown += 1
            elif names and (not actor or block[place]["actor"] == actor and "case" not in block[place]):
                drawn.append({"actor": block[place].get("actor"), "index": first + place, "record": digest, "trial": trial_of(digest), "witnesses": names})
        block = []
    if tree.root() != root:
        raise ValueError("the entries are not those of the checkpoint")
    for one in drawn:
        chain, whose = chains.get(log.chain_tag(one["trial"]), {"acts": 0, "about": set()}), one.pop("actor")
        one |= {"acts": chain["acts"], "judged": bool(chain["about"]) and (whose is None or whose in chain["about"])}
    in_order = lambda gaps: [gap for witness, _ in known for gap in gaps[witness.name]]
    of = {"actor": actor} | ({"unknown": unknown} if unknown else {}) if actor else {}
    return of | {"drawn": drawn, "format": "jurat/draws/v1", "missing": in_order(missing), "origin": origin, "share": int(share), "size": tree.size,
            "twofold": in_order(twofold), "waiting": len(block)}


def main():
    with open(sys.argv[1], "rb") as file:
        given = parse(file.read(), bounded=False)
    for case in given["cases"]:
        by_act = sorted(({json.dumps(one, sort_keys=True): one for one in case["draws"]}).values(),
                        key=lambda one: (one["size"], one["witness"].encode(), unbase64(one["signature"])))
        if by_act:
            check_draw("operator-draws", {"draws": by_act})
        found = read(given["origin"], given["entries"], unbase64(given["root"]), given["witnesses"], case["share"], case["draws"], case.get("actor"))
        print(json.dumps({"name": case["name"], "found": found}, sort_keys=True))


if __name__ == "__main__":
    main()
