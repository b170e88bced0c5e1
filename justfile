# What a contributor runs; `just` alone prints the list. CONTRIBUTING.md says how to set up the environment.
set shell := ["bash", "-euo", "pipefail", "-c"]

# what takes long beside the tests that are marked as slow: `just quick` leaves these files and folders out
slower := "tests/properties"

_list:
    @just --list --unsorted

# install the package (editable), the plugins and all tools into the active environment
dev:
    python -m pip install --quiet --upgrade 'pip>=25.1'
    pip install --group dev --editable '.[test]' $(printf -- '--editable %s ' plugins/offpolicy-*)

# compile the extension again after a change in Rust
build:
    maturin develop --release

# run the tests that take less than two minutes together
quick *arguments:
    pytest -q -m 'not slow' $(printf -- '--ignore=%s ' {{ slower }}) {{ arguments }}

# run all tests of Python and Rust
test:
    pytest
    cargo test --workspace --quiet

# run linters and type checkers
lint:
    .ci/lint

# let the linters mend what they can
format:
    ruff check --fix
    ruff format
    cargo fmt --all

# build the documentation; every warning is an error
docs:
    mkdocs build --strict

# draw the pictures of the documentation again
pictures:
    python tools/pictures.py

# run the small benchmark, which fails on ratios and never on times
bench:
    python benches/run.py --small

# make each known mistake in a copy of the source, and see a test fail
mutants *words:
    python tools/mutants.py {{ words }}

# build a wheel into dist/ and try it in a new environment
wheel:
    scratch=$(mktemp -d) && trap 'rm -rf "$scratch"' EXIT && .ci/wheel dist "$scratch/environment"

# check the workflows against their published schema
workflows:
    check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml

# run everything that a change must pass, from new environments
ci:
    .ci/run
