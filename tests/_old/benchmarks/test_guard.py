"""The guard over the ratios of `make bench`: its rule, its file, its page and how it counts.

Nothing here is timed: seconds are made up, or told by a clock that is.
"""

from __future__ import annotations

import platform
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks._old import bench, guard, machine, ratios
from benchmarks._old.guard import Figure, Figures, Kind
from benchmarks._old.page import NONE_YET, Section, page, report
from benchmarks._old.paper.cases import lacks_data
from benchmarks._old.paper.sets import load_set

WORDS = {name: (ratio.above, ratio.below) for name, ratio in ratios.RATIOS.items()}


def figure(median: float, spread: float = 1.05, above: float = 2.0) -> Figure:
    return Figure(
        median=median,
        low=median / spread,
        high=median * spread,
        above=above,
        below=above / median,
        repeats=9,
    )


def figures(quick: bool = False, **medians: float | Figure) -> Figures:
    found = {n: m if isinstance(m, Figure) else figure(m) for n, m in medians.items()}
    return Figures(
        when="2026-01-02",
        quick=quick,
        machine={"usable cores": "2", "processor": "abacus"},
        versions={"Python": "3.11.1", "numpy": "2.0"},
        ratios=found,
    )


def kinds(before: Figures, now: Figures) -> dict[str, Kind]:
    return {verdict.name: verdict.kind for verdict in guard.compare(before, now)}


@pytest.mark.parametrize(
    ("now", "kind"),
    [
        (4.0, Kind.SAME),
        (4.0 * guard.LIMIT, Kind.SAME),
        (4.0 * guard.LIMIT * 1.001, Kind.WORSE),
        (4.0 / guard.LIMIT, Kind.SAME),
        (4.0 / guard.LIMIT / 1.001, Kind.BETTER),
    ],
)
def test_the_limit_is_a_factor_of_the_committed_median(now, kind):
    assert kinds(figures(a=4.0), figures(a=now)) == {"a": kind}


@pytest.mark.parametrize(("before", "now"), [(2.0, 1.0), (1.0, 2.0), (1.5, 1.5)])
def test_a_ratio_that_scatters_raises_no_alarm(before, now):
    """Twice as large, but the quartiles of the two runs overlap."""
    old, new = figure(1.0, spread=before), figure(2.0, spread=now)
    assert kinds(figures(a=old), figures(a=new)) == {"a": Kind.SAME}


def test_new_and_missing_ratios_are_named_and_not_held_against_a_run():
    verdicts = guard.compare(figures(a=1.0, gone=1.0), figures(fresh=1.0, a=1.0))
    assert [(v.name, v.kind) for v in verdicts] == [
        ("fresh", Kind.NEW),
        ("a", Kind.SAME),
        ("gone", Kind.MISSING),
    ]
    assert not guard.worse(verdicts)
    text = report(verdicts)
    assert "fresh" in text
    assert "gone" in text


def test_quick_and_full_runs_are_not_compared():
    with pytest.raises(ValueError, match="quick run cannot be compared"):
        guard.compare(figures(a=1.0), figures(quick=True, a=1.0))
    text, is_well = bench.verdict(figures(a=1.0), figures(quick=True, a=9.0))
    assert is_well
    assert "not compared" in text


def test_figure_of_paired_seconds():
    """Ratios are taken pair by pair: a machine that slows down changes none of them."""
    found = guard.summarize([2.0, 4.0, 8.0, 16.0], [1.0, 2.0, 4.0, 8.0], scale=3.0)
    assert (found.low, found.median, found.high) == (6.0, 6.0, 6.0)
    assert (found.above, found.below, found.repeats) == (6.0, 3.0, 4)
    spread = guard.summarize([1.0, 2.0, 3.0, 4.0, 5.0], [1.0] * 5)
    assert (spread.low, spread.median, spread.high) == (2.0, 3.0, 4.0)


def test_of_two_runs_the_smaller_median_counts_whole():
    first, second = figures(a=3.0, b=1.0, c=5.0), figures(a=2.0, b=4.0)
    found = guard.better_of(first, second).ratios
    assert found == {"a": second.ratios["a"], "b": first.ratios["b"], "c": first.ratios["c"]}


@pytest.fixture
def measured(monkeypatch):
    """`measure_all` that answers with the given runs in turn and notes what it was asked."""
    asked, runs = [], []

    def measure_all(names, quick):
        asked.append(list(names))
        return runs.pop(0)

    monkeypatch.setattr(bench, "measure_all", measure_all)
    return asked, runs


@pytest.mark.parametrize(("again", "is_well"), [(1.1, True), (2.9, False), (3.5, False)])
def test_what_looks_worse_is_measured_once_more(measured, again, is_well):
    asked, runs = measured
    runs += [figures(a=1.0, b=3.0), figures(b=again)]
    found = bench.measure_and_repeat(figures(a=1.0, b=1.0), ["a", "b"], quick=False)
    assert asked == [["a", "b"], ["b"]]
    assert found.ratios["b"].median == min(3.0, again)
    assert bench.verdict(figures(a=1.0, b=1.0), found)[1] is is_well


@pytest.mark.parametrize("committed", [None, figures(a=1.0)])
def test_nothing_is_measured_twice_without_a_reason(measured, committed):
    asked, runs = measured
    runs += [figures(a=1.0)]
    bench.measure_and_repeat(committed, ["a"], quick=False)
    assert asked == [["a"]]


class Clock:
    """Stands still but for what the parts of a pair take."""

    def __init__(self) -> None:
        self.now = 0.0
        self.order = ""

    def __call__(self) -> float:
        return self.now

    def part(self, letter: str, *seconds: float):
        """Calls take the given seconds in turn, the last of them from then on."""
        left = list(seconds)

        def call() -> None:
            self.now += left.pop(0) if len(left) > 1 else left[0]
            self.order += letter

        return call


def test_parts_take_turns_and_change_places():
    clock = Clock()
    pair = ratios.Pair(above=clock.part("a", 0.5), below=clock.part("b", 0.25), scale=10.0)
    found = ratios.alternate(pair, 3, clock)
    assert clock.order == "aa" + "bb" + "ab" + "ba" + "ab"
    assert (found.median, found.above, found.below, found.repeats) == (20.0, 0.5, 0.25, 3)


def test_short_calls_are_repeated():
    """As often as the second call says, for the first one may load something."""
    clock = Clock()
    pair = ratios.Pair(above=clock.part("a", 2.0), below=clock.part("b", 0.3, 0.02))
    found = ratios.alternate(pair, 1, clock)
    assert clock.order == "aa" + "bb" + "a" + "bbb"
    assert found.below == pytest.approx(0.02)
    assert found.median == pytest.approx(100.0)


def test_long_calls_are_not_tried():
    clock = Clock()
    pair = ratios.Pair(above=clock.part("a", 3.0, 2.0), below=clock.part("b", 1.0), long=True)
    found = ratios.alternate(pair, 3, clock)
    assert clock.order == "ab" + "ba" + "ab"
    assert (found.median, found.high) == (2.0, 2.5)


def test_a_ratio_measures_what_it_prepares():
    clock, sizes = Clock(), []

    @contextmanager
    def prepare(quick):
        sizes.append(quick)
        yield ratios.Pair(above=clock.part("a", 1.0), below=clock.part("b", 1.0))

    ratio = ratios.Ratio(above="a", below="b", prepare=prepare, repeats=5)
    assert [ratios.measure(ratio, quick).repeats for quick in (True, False)] == [3, 5]
    assert sizes == [True, False]


def test_figures_come_back_from_their_file(tmp_path):
    written = figures(a=1.25, b=0.5)
    guard.write(written, tmp_path / "new" / "ratios.json")
    found = guard.read(tmp_path / "new" / "ratios.json")
    assert (found.when, found.quick, found.machine) == (written.when, False, written.machine)
    assert found.versions == written.versions
    assert found.ratios["a"].median == 1.25
    assert found.ratios["a"].low == 1.19  # 1.25 / 1.05 to four digits
    assert guard.read(tmp_path / "absent.json") is None


def test_committed_page_is_that_of_the_committed_figures():
    committed = guard.read(bench.COMMITTED)
    text = bench.PAGE.read_text()
    if committed is None:
        assert text == page(None, WORDS)
        assert NONE_YET in text
        return
    assert not committed.quick
    assert set(committed.ratios) <= set(ratios.RATIOS)
    for name, found in committed.ratios.items():
        assert f"| {name} | {' | '.join(WORDS[name])} | {found.median:.3g} |" in text


def test_a_script_without_its_data_or_library_is_left_out(monkeypatch, tmp_path):
    script = bench.Script(
        title="x", module="x", link="x", arguments=(), quick=(), data=("toy", "slump")
    )
    monkeypatch.delenv("BOWTIENET_DATA", raising=False)
    lacks_data.cache_clear()
    load_set.cache_clear()
    text = bench.why_not(script)
    assert text.startswith("Not measured: FileNotFoundError: ")
    assert "slump" in text
    assert bench.why_not(replace(script, data=("toy",))) is None
    other = replace(script, libraries=("json", "no_such_library"))
    assert bench.why_not(other) == "Not measured: no_such_library was not installed."
    section, went_well = bench.run_script(other, quick=True)
    assert went_well
    assert (section.text, section.seconds) == (bench.why_not(other), None)
    lacks_data.cache_clear()  # for tests that have the data


@pytest.mark.parametrize(("code", "went_well"), [("print('| t |')", True), ("exit(3)", False)])
def test_a_script_that_fails_is_noticed(code, went_well, tmp_path, monkeypatch):
    (tmp_path / "script.py").write_text(code)
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    script = bench.Script(title="x", module="script", link="x", arguments=(), quick=())
    section, found = bench.run_script(script, quick=False)
    assert found is went_well
    assert section.text.strip() == ("| t |" if went_well else "It failed and ended with 3.")


@pytest.fixture
def places(monkeypatch, tmp_path):
    """The files of the program in a folder of their own."""
    monkeypatch.setattr(bench, "ROOT", tmp_path)
    monkeypatch.setattr(bench, "COMMITTED", tmp_path / "ratios.json")
    monkeypatch.setattr(bench, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(bench, "BUILD", tmp_path / "build")
    return tmp_path


def last_run(places, run: Figures) -> None:
    guard.write(run, places / "build" / bench.FIGURES_NAME)
    (places / "build" / bench.PAGE_NAME).write_text(page(run, WORDS))


def test_from_the_first_run_to_an_alarm_and_its_acceptance(places, capsys):
    last_run(places, figures(a=1.0))
    assert bench.main(["--last"]) == 0
    assert "No figures have been committed yet" in capsys.readouterr().out
    assert not (places / "ratios.json").exists()
    assert bench.main(["--last", "--accept"]) == 0
    assert "| a |" in (places / "page.md").read_text()
    last_run(places, figures(a=2.0))
    assert bench.main(["--last"]) == 1
    assert "x 2.00" in capsys.readouterr().out
    assert bench.main(["--last", "--accept"]) == 0
    assert bench.main(["--last"]) == 0


def test_a_run_measures_all_and_writes_to_the_build_place(places, measured, monkeypatch):
    asked, runs = measured
    monkeypatch.setattr(bench, "SCRIPTS", bench.SCRIPTS[:1])
    section = Section(title="T", command="c", link="l", text="| t |")
    monkeypatch.setattr(bench, "run_script", lambda script, quick: (section, True))
    runs += [figures(a=1.0)]
    assert bench.main([]) == 0
    assert asked == [list(ratios.RATIOS)]
    assert "## T" in (places / "build" / bench.PAGE_NAME).read_text()
    assert not (places / "ratios.json").exists()
    monkeypatch.setattr(bench, "run_script", lambda script, quick: (section, False))
    runs += [figures(a=1.0)]
    assert bench.main(["--accept"]) == 1  # a script failed: its page is not taken
    assert not (places / "ratios.json").exists()


def test_ratios_that_need_more_cores_are_left_out(monkeypatch):
    facts = {"usable cores": "1"}
    monkeypatch.setattr(bench, "machine", lambda: facts)
    monkeypatch.setattr(bench, "in_own_process", lambda name, quick: figure(1.0))
    found = bench.measure_all(["start", "two threads"], quick=True)
    assert list(found.ratios) == ["start"]
    assert found.quick


def test_facts_of_the_machine_name_no_host_and_no_path():
    found = {**machine.machine(), **machine.versions()}
    assert int(found["usable cores"]) >= 1
    assert found["python"] == platform.python_version()
    assert all(isinstance(value, str) and value for value in found.values())
    text = " ".join(found.values())
    for private in (platform.node(), str(Path.home()), str(Path.cwd())):
        assert private not in text


@pytest.mark.slow
@pytest.mark.parametrize("name", ratios.RATIOS)
@pytest.mark.filterwarnings("ignore")
def test_each_ratio_can_be_measured(name):
    found = ratios.measure(ratios.RATIOS[name], quick=True)
    assert found.low <= found.median <= found.high
    assert min(found.above, found.below) > 0.0
