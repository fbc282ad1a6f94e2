# What can be done here; `just` alone lists it. Arguments reach the commands unchanged, also with blanks in them.
set positional-arguments
export LOADLAB_PYTHON := env("LOADLAB_PYTHON", justfile_directory() / ".venv/bin/python")

loadlab := "cargo run --release --quiet --"

[private]
default:
    @just --list --unsorted

# Run an experiment: just run experiments/unlogged.yaml --profile quick
[group("experiments")]
run EXPERIMENT *ARGS:
    @{{loadlab}} run "$@"

# Find every mistake in experiment files, without a server
[group("experiments")]
check *FILES="experiments/*.yaml":
    @{{loadlab}} check {{FILES}}

# Show treatments, order, rows, disk and time of a run, without a server
[group("experiments")]
plan FILE *ARGS:
    @{{loadlab}} plan "$@"

# Show the results of a run: the newest, or a run's folder; --format markdown
[group("experiments")]
report *ARGS:
    @{{loadlab}} report "$@"

# Judge the published claims of an experiment by its newest run, or by a run's folder
[group("experiments")]
claims *ARGS:
    @{{loadlab}} claims "$@"

# Compare two runs, or two treatments: just compare storage=logged storage=unlogged
[group("experiments")]
compare FIRST SECOND *ARGS:
    @{{loadlab}} compare "$@"

# Pack a finished run for a repository: just keep results/<experiment>/<run>
[group("experiments")]
keep RUN:
    @{{loadlab}} keep "$1"

# Repeat a run from its folder alone and compare the two: just rerun results/quickstart/RUN
[group("experiments")]
rerun RUN *ARGS:
    @{{loadlab}} rerun "$@"

# Write loadlab.lock for experiment files; `just run FILE --locked` then refuses drift
[group("experiments")]
lock *FILES:
    @{{loadlab}} lock "$@"

# Execute the notebook on results/ and keep the executed copy there
[group("experiments")]
notebook NOTEBOOK="notebooks/01-first-look.ipynb" RESULTS="results": python
    @"$LOADLAB_PYTHON" notebooks/execute.py "$1" "$2" --save "$2/$(basename "$1")"
    @echo "executed copy: $2/$(basename "$1")"

# Say what servers this machine can run, and for what it cannot, why and what to do
[group("servers")]
doctor:
    @{{loadlab}} env doctor

# Build the container image loadlab/postgres:MAJOR (15 or 17) without a registry
[group("servers")]
image MAJOR="15":
    environments/images/build.sh "$1"

# Remove what killed runs left behind
[group("servers")]
clean:
    @{{loadlab}} clean

# Every test: pure ones, real servers on both backends, Python readers and notebooks
[group("development")]
test: python
    cargo test --no-fail-fast

# Tests that need no server, no container engine, no network and no Python
[group("development")]
test-fast:
    cargo test --lib
    cargo test --test main -- --skip server_ --skip python_

# Tests against real servers, local and in containers
[group("development")]
test-server:
    cargo test --test main -- server_

# Format, clippy and rustdoc, every warning an error
[group("development")]
lint:
    cargo fmt --check
    cargo clippy --all-targets --quiet -- -D warnings
    RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --quiet

# Licences, advisories and bans of the dependencies (needs cargo-deny)
[group("development")]
deny:
    cargo deny check

# loadlab's own speed, as ratios within one run
[group("development")]
bench *ARGS:
    cargo bench --bench ratios -- "$@"

# Write the generated files anew: docs/schema/, docs/FORMAT.md, docs/RESULTS.md, docs/CLAIMS.md
[group("development")]
schema:
    UPDATE_DOCS=1 cargo test --quiet --lib --test main -- generated document

# Accept all changed snapshots; review them as a diff
[group("development")]
bless:
    INSTA_UPDATE=always "{{just_executable()}}" test-fast

# The Python that reads results, with what notebooks/requirements.txt names
[private]
python:
    @test .venv/ready -nt notebooks/requirements.txt || python3 -m venv .venv
    @test .venv/ready -nt notebooks/requirements.txt || .venv/bin/pip install --quiet --requirement notebooks/requirements.txt
    @touch .venv/ready
