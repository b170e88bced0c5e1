# What a contributor runs; `just` alone prints the list. CONTRIBUTING.md says how to set up the environment.
set shell := ["bash", "-euo", "pipefail", "-c"]

# `just quick` leaves out the tests that are marked as slow, the plugins, and these files and folders, which take three to forty seconds each
slower := "
    tests/project/test_attacks.py tests/unit/evaluation/test_states.py
    tests/properties/test_interval_properties.py tests/properties/test_magic.py
    tests/properties/test_properties.py tests/properties/test_special_cases.py
    tests/unit/annotation/test_transition_ratio.py
    tests/unit/cli/test_simulate.py tests/unit/cli/test_terminal.py
    tests/unit/drivers/test_compare.py tests/unit/drivers/test_cross_fit.py
    tests/unit/evaluation/test_difference.py tests/unit/evaluation/test_propensity_score.py
    tests/unit/experiments
    tests/project/test_docs.py tests/project/test_pages.py tests/project/test_readme.py tests/project/test_site.py
    tests/unit/intervals/test_coverage.py tests/unit/intervals/test_finite_sample.py
    tests/unit/intervals/test_interval_choice.py tests/unit/intervals/test_interval_use.py
    tests/unit/logs/test_arrow_input.py tests/unit/logs/test_clusters.py tests/unit/logs/test_damaged_any_order.py
    tests/unit/models/test_fqe.py tests/unit/models/test_recurrent.py
    tests/unit/testing/test_testing.py
    tests/unit/util/test_visible.py
"

_list:
    @just --list --unsorted

# install the package (editable), the plugins and all tools into the active environment
dev:
    python -m pip install --quiet --upgrade 'pip>=25.1'
    pip install --group dev --editable '.[test]' $(printf -- '--editable %s ' plugins/offpolicy-*)

# compile the extension again after a change in Rust
build:
    maturin develop --release --skip-install

# run the tests that take less than two minutes together
quick *arguments:
    pytest tests -q -m 'not slow' $(printf -- '--ignore=%s ' {{ replace(slower, "\n", " ") }}) {{ arguments }}

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
    rustfmt --edition 2024 rust/core/src/estimators/*.rs

# build the documentation; every warning is an error
docs:
    NO_MKDOCS_2_WARNING=1 mkdocs build --strict

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
