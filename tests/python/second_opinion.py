"""Compares notebooks/verdicts.py with loadlab.

    python tests/python/second_opinion.py LIST

LIST is a JSON file, [{"run": folder, "claims": what `loadlab claims --format json` says}, ...]. Verdicts must be equal, ratios and ends
of intervals agree to a billionth.
"""

import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "notebooks"))

import verdicts  # noqa: E402

CLOSE = 1e-9
# Of tables and of R, so that the second opinion stands on its own.
T_975 = {1: 12.7062047, 2: 4.3026527, 5: 2.5705818, 9: 2.2621572, 30: 2.0422725}
RANKS = {6: 1, 7: 3, 8: 4, 10: 9, 15: 26, 25: 90}


def close(a: float | None, b: float | None) -> bool:
    return a is b or (a is not None and b is not None and math.isclose(a, b, rel_tol=CLOSE))


def all_close(a, b) -> bool:
    return a is b or (a is not None and b is not None and all(map(close, a, b)))


def check_tables() -> None:
    for degrees, quantile in T_975.items():
        assert abs(verdicts.t_quantile(0.95, degrees) - quantile) < 1e-6, degrees
    for n, depth in RANKS.items():
        assert verdicts.signed_rank_depth(n, 0.95) == depth, n
    # Gosset's sleep data, R: t.test(extra ~ group, paired = TRUE).
    sleep = [1.2, 2.4, 1.3, 1.3, 0.0, 1.0, 1.8, 0.8, 4.6, 1.4]
    low, high = map(math.log, verdicts.interval(sleep, 0.95))
    assert low <= 0.7001142 + 1e-6 and high >= 2.4598858 - 1e-6, (low, high)


def complaints(run: str, mine: dict, theirs: dict) -> list[str]:
    """What differs in one claim."""
    found = []

    def differ(what: str, a, b) -> None:
        found.append(f"{run}: {mine['claim']} ({mine['kind']}): {what} is {a} here, {b} by loadlab: {theirs['reason']}")

    if mine["claim"] != theirs["claim"]:
        differ("the claim", mine["claim"], theirs["claim"])
    if mine["verdict"] != theirs["verdict"]:
        differ("the verdict", mine["verdict"], theirs["verdict"])
    theirs_range = theirs["tolerance"] and theirs["tolerance"]["range"]
    if not all_close(mine["tolerance"], theirs_range):
        differ("the tolerance", mine["tolerance"], theirs_range)
    if len(mine["comparisons"]) != len(theirs["comparisons"]):
        differ("the number of comparisons", len(mine["comparisons"]), len(theirs["comparisons"]))
    for a, b in zip(mine["comparisons"], theirs["comparisons"]):
        ratio = b["ratio"] or {"ratio": None, "interval": None, "together": None, "blocks": 0}
        for key in ("pairs", "alike"):
            if a[key] != b[key]:
                differ(key, a[key], b[key])
        if a["blocks"] != ratio["blocks"]:
            differ("blocks", a["blocks"], ratio["blocks"])
        if not close(a["ratio"], ratio["ratio"]):
            differ("the ratio", a["ratio"], ratio["ratio"])
        for key in ("interval", "together"):
            if not all_close(a[key], ratio[key]):
                differ(key, a[key], ratio[key])
    return found


def main() -> int:
    check_tables()
    broken, judged = [], {}
    for entry in json.loads(pathlib.Path(sys.argv[1]).read_text()):
        mine = verdicts.verdicts(pathlib.Path(entry["run"]))
        assert len(mine) == len(entry["claims"]), entry["run"]
        for one, other in zip(mine, entry["claims"]):
            broken += complaints(entry["run"], one, other)
            judged[one["verdict"]] = judged.get(one["verdict"], 0) + 1
    for line in broken[:40]:
        print(line)
    print(f"{len(broken)} differences in {sum(judged.values())} claims: {judged}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
