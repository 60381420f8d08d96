"""The hooks and the workflow that `shapeguard init` writes, as texts to fill in."""

from __future__ import annotations

HOOK = """  - repo: local
    hooks:
      - id: shapeguard
        name: shapeguard lint
        entry: shapeguard lint --force-exclude
        language: system
        types_or: [python, pyi, jupyter]
        require_serial: true
      - id: shapeguard-lock
        name: shapeguard check --static
        entry: shapeguard check --static{config}
        language: system
        pass_filenames: false
"""

WORKFLOW = """name: {name}

on: [push, pull_request]

permissions:
  contents: read
  security-events: write

jobs:
  shapeguard:
    runs-on: ubuntu-latest
    env:
      # Where shapeguard is installed from: a name on your index, a wheel, or an address that pip knows.
      SHAPEGUARD_PACKAGE: "{package}"
      OMP_NUM_THREADS: "1"
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "{python}"
      - name: Install what the lock was made with
        run: |
{install}
      - name: Find dynamic shapes in the code
        run: shapeguard lint{folder} --output-format github --output sarif=shapeguard-lint.sarif
      - name: Compare what compiles with the lock and the budgets
        if: success() || failure()
        run: shapeguard check{config} --output-format github --output sarif=shapeguard-check.sarif
      - name: Show the findings of the code
        if: success() || failure()
        # Needs code scanning, which not every repository has.
        continue-on-error: true
        uses: github/codeql-action/upload-sarif@v3
        with:
          sarif_file: shapeguard-lint.sarif
          category: shapeguard-lint
      - name: Show the findings of the check
        if: success() || failure()
        continue-on-error: true
        uses: github/codeql-action/upload-sarif@v3
        with:
          sarif_file: shapeguard-check.sarif
          category: shapeguard-check
"""
