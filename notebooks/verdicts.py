"""A second opinion: the verdicts on a run's claims, from run.json and the Parquet files alone.

    python notebooks/verdicts.py RUN [RUN ...]

RUN is a folder results/<experiment>/<run>. Written from docs/METHODOLOGY.md ("The arithmetic of a verdict") with polars and
the standard library; it shares no code with loadlab, so that a mistake would have to be made twice. The tests compare both.
"""

import json
import math
import pathlib
import sys
from fractions import Fraction
from statistics import NormalDist, fmean

import polars as pl

LEVEL = 0.95
MIN_BLOCKS = 6
# Guards by what they void; `client_bound` voids nothing, every other guard the step.
VOID_TRIAL = {"rows_wrong", "checksum_wrong", "setting_not_in_force", "server_restarted", "out_of_memory_kill"}
VOID_NOTHING = {"client_bound"}
# Times that do not depend on how fast the client is.
NOT_THE_CLIENTS = {"flush_seconds", "settle_seconds", "commit_seconds", "server_cpu_seconds", "client_cpu_seconds"}


# --- statistics -------------------------------------------------------------------------------------------------------


def within_t(theta: float, degrees: int) -> float:
    """Probability that Student's t lies within ±tan(theta) √degrees: the finite sums for whole degrees of freedom
    (M. Abramowitz and I. A. Stegun, "Handbook of Mathematical Functions", 26.7.3 and 26.7.4)."""
    cos2 = math.cos(theta) ** 2
    if degrees % 2 == 0:
        term = total = 1.0
        for k in range(2, degrees, 2):
            term *= cos2 * (k - 1) / k
            total += term
        return math.sin(theta) * total
    if degrees == 1:
        return 2 * theta / math.pi
    term = total = math.cos(theta)
    for k in range(3, degrees, 2):
        term *= cos2 * (k - 1) / k
        total += term
    return 2 / math.pi * (theta + math.sin(theta) * total)


def t_quantile(level: float, degrees: int) -> float:
    """The t within whose ± a share `level` lies; found by halving."""
    low, high = 0.0, math.pi / 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if within_t(middle, degrees) < level else (low, middle)
    return math.tan((low + high) / 2) * math.sqrt(degrees)


def signed_rank_depth(n: int, level: float) -> int:
    """The largest k for which a rank sum below k is as improbable as half of what the level leaves; 1 where none is."""
    tail = (1 - Fraction(level)) / 2
    if n > 60:
        place = n * (n + 1) / 4 + NormalDist().inv_cdf(float(tail)) * math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
        return max(1, math.floor(place + 0.5))
    ways = [1]  # of making each rank sum
    for rank in range(1, n + 1):
        longer = ways + [0] * rank
        for total, count in enumerate(ways):
            longer[total + rank] += count
        ways = longer
    below = depth = 0
    for count in ways:
        below += count
        if Fraction(below, 2**n) > tail:
            break
        depth += 1
    return max(1, depth)


def interval(logs: list[float], level: float) -> tuple[float, float] | None:
    """The smallest interval of ratios that holds Student's and the signed-rank test's."""
    n = len(logs)
    if n < 2:
        return None
    centre = math.fsum(logs) / n
    deviation = math.sqrt(math.fsum((log - centre) ** 2 for log in logs) / (n - 1))
    half = t_quantile(level, n - 1) * deviation / math.sqrt(n)
    means = sorted((a + b) / 2 for i, a in enumerate(logs) for b in logs[i:])
    depth = min(signed_rank_depth(n, level), (len(means) + 1) // 2)
    return math.exp(min(centre - half, means[depth - 1])), math.exp(max(centre + half, means[-depth]))


# --- values and pairs -------------------------------------------------------------------------------------------------


class Run:
    """A run's design, claims and trials."""

    def __init__(self, folder: pathlib.Path):
        self.about = json.loads((folder / "run.json").read_text())
        self.factors = self.about["design"]["factors"]
        self.trials: dict[int, list[dict]] = {}
        for row in pl.read_parquet(folder / "measurements.parquet").iter_rows(named=True):
            self.trials.setdefault(row["trial"], []).append(row)
        self.captured: dict[tuple, float] = {}
        captures = folder / "captures.parquet"
        if captures.exists():
            for row in pl.read_parquet(captures).iter_rows(named=True):
                self.captured[row["trial"], row["step_index"], row["name"]] = row["value"]

    def levels(self, row: dict) -> tuple[int, ...] | None:
        """Level index of each factor; `None` when the design does not know one."""
        chosen = json.loads(row["factors"])
        found = []
        for factor in self.factors:
            names = [json.dumps(level["name"] if level["value"] is None else level["value"]) for level in factor["levels"]]
            wanted = json.dumps(chosen.get(factor["name"]))
            if wanted not in names:
                return None
            found.append(names.index(wanted))
        return tuple(found)

    def number(self, row: dict, name: str) -> float | None:
        captured = self.captured.get((row["trial"], row["step_index"], name))
        value = row.get(name) if captured is None else captured
        return None if value is None else float(value)

    def value(self, rows: list[dict], metric: dict) -> float | None:
        """What a trial says of a metric, or nothing."""
        void = any(guard in VOID_TRIAL for row in rows for guard in row["guards"] or [])
        total, any_step = 0.0, False
        for step in metric["steps"]:
            repetitions = [row for row in rows if row["step"] == step]
            if not repetitions:
                continue
            for row in repetitions:
                guarded = any(guard not in VOID_NOTHING for guard in row["guards"] or [])
                valid = not void and not guarded and row["outcome"] == row["trial_outcome"] == "ok"
                assert row["smoke"] or valid == row["valid"], f"`valid` of trial {row['trial']}, {step} is not what its guards say"
                if not valid:
                    return None
            numbers = [self.number(row, metric["name"]) for row in repetitions]
            if any(number is None for number in numbers):
                return None
            if len(numbers) == 1:
                total += numbers[0]
            elif min(numbers) > 0:
                total += math.exp(fmean(math.log(number) for number in numbers))
            else:
                total += fmean(numbers)
            any_step = True
        return total if any_step else None

    def values(self, metric: dict, groups: list[dict]) -> tuple[dict, list[list[dict]]]:
        """Values by treatment and block of all trials in one of the groups, and these trials."""
        found, used = {}, []
        for rows in self.trials.values():
            levels = self.levels(rows[0])
            if levels is None or not any(holds(group, levels) for group in groups):
                continue
            value = self.value(rows, metric)
            if value is not None:
                found.setdefault(levels, {})[rows[0]["block"]] = value
                used.append(rows)
        return found, used


# Parameters of a step that change nothing of what the client does.
THE_SERVERS = {"table", "freeze", "same_transaction", "until", "verify", "cache", "state"}


def client_work(row: dict) -> str:
    def clients(value):
        if not isinstance(value, dict):
            return value
        return {key: clients(inner) for key, inner in value.items() if key not in THE_SERVERS}

    try:
        parameters = json.dumps(clients(json.loads(row["parameters"])))
    except json.JSONDecodeError:
        parameters = row["parameters"]
    row_bytes = math.floor((row["payload_bytes"] or 0) / row["rows"] + 0.5) if row["rows"] else 0
    return f"{parameters} {row_bytes}"


def hides_the_server(used: list[list[dict]], run: "Run", of: dict, to: dict, metric: dict) -> bool:
    """Whether the client set the pace in half of the trials of a treatment, and did the same for one on the other side."""
    if metric["counter"] or metric["name"] in NOT_THE_CLIENTS:
        return False

    def works(group: dict) -> list[tuple[bool, set[str]]]:
        treatments: dict = {}
        for rows in used:
            levels = run.levels(rows[0])
            if holds(group, levels):
                steps = [row for step in metric["steps"] for row in rows if row["step"] == step]
                bound = any("client_bound" in (row["guards"] or []) for row in steps)
                way = "\n".join(client_work(row) for row in steps)
                treatments.setdefault(levels, []).append((bound, way))
        return [
            (any(bound for bound, _ in trials) and 2 * sum(bound for bound, _ in trials) >= len(trials), {way for _, way in trials})
            for trials in treatments.values()
        ]

    return any((a_bound or b_bound) and a & b for a_bound, a in works(of) for b_bound, b in works(to))


def holds(group: dict, levels: tuple[int, ...]) -> bool:
    return all(levels[factor] == level for factor, level in group["levels"])


def block_logs(values: dict, of: dict, to: dict, counter: bool) -> tuple[list[float], int, bool]:
    """The log ratio of each block, the number of pairs, and whether partners are alike in all that is not named."""
    named = {factor for group in (of, to) for factor, _ in group["levels"]}

    def partners(alike: bool):
        for a in values:
            for b in values:
                same = all(x == y for factor, (x, y) in enumerate(zip(a, b)) if factor not in named)
                if a != b and holds(of, a) and holds(to, b) and (same or not alike):
                    yield values[a], values[b]

    alike = True
    pairs = list(partners(True))
    if not pairs:
        alike, pairs = False, list(partners(False))
    least = 1.0 if counter else 0.0
    combinations = []
    for ours, theirs in pairs:
        both = {block: (max(ours[block], least), max(theirs[block], least)) for block in ours if block in theirs}
        logs = {block: math.log(a / b) for block, (a, b) in both.items() if a > 0 and b > 0}
        if logs:
            combinations.append(logs)
    centres = [fmean(logs.values()) for logs in combinations]
    left: dict[int, list[float]] = {}
    for logs, centre in zip(combinations, centres):
        for block, log in logs.items():
            left.setdefault(block, []).append(log - centre)
    whole = fmean(centres) if centres else 0.0
    return [whole + fmean(left[block]) for block in sorted(left)], sum(map(len, combinations)), alike


# --- claims -----------------------------------------------------------------------------------------------------------


def statement(claim: dict) -> tuple[str, object]:
    [(kind, body)] = claim["statement"].items()
    return kind, body


def contrasts(claim: dict) -> list[tuple[dict, dict]]:
    kind, body = statement(claim)
    if kind == "ratio":
        return [(body["of"], body["to"])]
    if kind == "no_difference":
        return [(body["contrast"]["of"], body["contrast"]["to"])]
    if kind == "order":
        return list(zip(body, body[1:])) + ([(body[0], body[-1])] if len(body) > 2 else [])
    return []


def family_size(claims: list[dict]) -> int:
    """Different comparisons of times and rates in all claims together."""
    members = set()
    for claim in claims:
        if claim["metric"] and not claim["metric"]["counter"]:
            members |= {json.dumps([claim["metric"], of, to]) for of, to in contrasts(claim)}
    return len(members)


def half_step(values: list[float], told: float | None = None) -> float:
    def shows(digits: int) -> bool:
        return all(abs(value - round(value, digits)) < 1e-6 * max(10.0**-digits, 1.0) for value in values)

    return (10.0 ** -next((d for d in range(7) if shows(d)), 6) if told is None else told) / 2


def tolerance(claim: dict) -> tuple[float, float, float] | None:
    """Share, lower and upper end of what counts as the published ratio."""
    published = claim["published"]
    if not published or published <= 0:
        return None
    raw = claim["raw"] or {"of": [], "to": []}
    of, to = raw["of"], raw["to"]
    if of and to:
        log = half_step(of, raw["rounding"]) / fmean(of) + half_step(to, raw["rounding"]) / fmean(to)
        degrees = len(of) + len(to) - 2
        if degrees > 0:
            squares = sum((value / fmean(side) - 1) ** 2 for side in (of, to) for value in side)
            log += t_quantile(0.95, degrees) * math.sqrt(squares / degrees * (1 / len(of) + 1 / len(to)))
            log = max(log, math.log(1.05))
        else:
            log += math.log(1.1)
    else:
        second = 10.0 ** (math.floor(math.log10(published)) - 1) / 2
        log = math.log(1.1) + min(half_step([published]), second) / published
    return math.expm1(log), published / math.exp(log), published * math.exp(log)


def met(name: str, bound: str, used: list[list[dict]], claim: dict, host: dict) -> bool:
    """Whether a need holds in all trials that have a value."""
    rows = [row for trial in used for row in trial]
    firsts = [trial[0] for trial in used if trial[0]["backend"] is not None]
    words = {"backend": "backend", "storage": "server_storage", "connection": "connection", "durable": "durable"}
    if name in words:
        found = [row[words[name]] for row in firsts]
        return bool(found) and all((str(value).lower() if name == "durable" else value) == bound for value in found)
    if name == "rows":
        most = lambda trial: max((row[key] for row in trial for key in ("rows", "rows_in_table") if row[key] is not None), default=None)
        found = [most(trial) for trial in used]
    elif name == "seconds":
        spans = lambda trial: [math.floor(row["seconds"] + 0.5) for row in trial if row["step"] in claim["metric"]["steps"]]
        found = [max(spans(trial), default=None) for trial in used]
    elif name == "version":
        found = [row["server_version_num"] for row in firsts]
    elif name in ("cores", "memory"):
        found = [host["cores" if name == "cores" else "memory_bytes"]]
    else:
        return False
    return bool(found) and None not in found and all(holds_bound(value, bound.strip(), name) for value in found)


def holds_bound(value: int, bound: str, name: str) -> bool:
    sign = next((sign for sign in (">=", "<=", "==", ">", "<", "=") if bound.startswith(sign)), "")
    rest = bound[len(sign):].strip().replace("_", "")
    sign = sign or ("=" if name == "version" else ">=")
    if name == "version":
        major, _, minor = rest.partition(".")
        limit = int(major) * 10_000 + int(minor or 0)
        value = value if minor else value // 10_000 * 10_000
    else:
        units = {"kB": 2**10, "MB": 2**20, "GB": 2**30, "TB": 2**40} if name == "memory" else {}
        unit = next((unit for unit in units if rest.endswith(unit)), "")
        limit = int(rest.removesuffix(unit)) * units.get(unit, 1)
    comparison = (value > limit) - (value < limit)
    return {">=": comparison >= 0, "<=": comparison <= 0, ">": comparison > 0, "<": comparison < 0}.get(sign, comparison == 0)


def place(found: tuple[float, float], low: float, high: float) -> str:
    if low <= found[0] and found[1] <= high:
        return "inside"
    return "below" if found[1] < low else "above" if found[0] > high else "across"


def rule(claim: dict, comparisons: list[dict], tolerated, needs_met: bool) -> str:
    kind, body = statement(claim)
    blocks = [comparison["blocks"] for comparison in comparisons]
    if kind == "not_comparable" or not blocks or min(blocks) == 0 or not needs_met:
        return "not_comparable"
    if min(blocks) < MIN_BLOCKS or any(comparison["client_bound"] for comparison in comparisons):
        return "inconclusive"
    found = comparisons[0]["together"]
    if kind == "order":
        places = [place(comparison["together"], 1, 1) for comparison in comparisons]
        steps = places[:-1] if len(places) > 1 else places
        if "below" in places:
            return "contradicted"
        if all(step == "above" for step in steps):
            return "reproduced"
        in_order = all(comparison["ratio"] > 1 for comparison in comparisons[: len(steps)])
        return "same_direction" if in_order and places[-1] == "above" else "inconclusive"
    if kind == "ratio" and tolerated is None:
        return "not_comparable"
    if kind == "no_difference" or claim["published"] == 1:
        margin = body["margin"] if kind == "no_difference" else tolerated[0]
        where = place(found, 1 / (1 + margin), 1 + margin)
        return {"inside": "reproduced", "across": "inconclusive"}.get(where, "contradicted")
    to_published, to_one = place(found, *tolerated[1:]), place(found, 1, 1)
    claimed = "above" if claim["published"] > 1 else "below"
    if to_published == "inside":
        return "reproduced"
    if to_one == claimed:
        return "same_direction"
    nothing = place(found, 1 / 1.05, 1.05) == "inside"
    if to_published != "across" and (nothing or to_one in ("above", "below")):
        return "contradicted"
    return "inconclusive"


def verdicts(folder: pathlib.Path) -> list[dict]:
    """All claims of a run with their comparisons and verdicts (`None` where none is ever given)."""
    run = Run(folder)
    claims = run.about["claims"]
    many = family_size(claims)
    judged = []
    for claim in claims:
        kind, body = statement(claim)
        pairs = contrasts(claim)
        groups = [group for pair in pairs for group in pair] or ([body] if kind == "absolute" else [])
        metric = claim["metric"]
        values, used = run.values(metric, groups) if metric else ({}, [])
        family = 1 if metric and metric["counter"] else many
        comparisons = []
        for of, to in pairs:
            logs, count, alike = block_logs(values, of, to, metric["counter"])
            comparisons.append({
                "ratio": math.exp(fmean(logs)) if logs else None,
                "interval": interval(logs, LEVEL),
                "together": interval(logs, 1 - (1 - LEVEL) / max(family, 1)),
                "blocks": len(logs),
                "pairs": count,
                "alike": alike,
                "client_bound": hides_the_server(used, run, of, to, metric),
            })
        tolerated = tolerance(claim) if kind == "ratio" else None
        needs = all(met(name, str(bound).lower() if isinstance(bound, bool) else str(bound), used, claim, run.about["host"])
                    for name, bound in claim["needs"].items())
        never = run.about["smoke"] or kind == "absolute"
        judged.append({
            "claim": claim["id"],
            "kind": kind,
            "published": claim["published"],
            "tolerance": tolerated[1:] if tolerated else None,
            "family": family,
            "comparisons": [] if run.about["smoke"] else comparisons,
            "verdict": None if never else rule(claim, comparisons, tolerated, needs),
        })
    return judged


def main() -> None:
    for folder in map(pathlib.Path, sys.argv[1:]):
        print(folder)
        for judged in verdicts(folder):
            print(f"  {judged['claim']}: {(judged['verdict'] or 'not judged').replace('_', ' ')}")
            for comparison in judged["comparisons"]:
                if comparison["together"]:
                    low, high = comparison["together"]
                    print(f"    {comparison['ratio']:.4g} ({low:.4g} to {high:.4g}), {comparison['blocks']} blocks")


if __name__ == "__main__":
    main()
