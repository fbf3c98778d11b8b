"""Print every benchmark: python -m benchmarks."""

from __future__ import annotations

from benchmarks import checkpoint, configs, diagnosis, grading, handout, head, page, preview


def main() -> None:
    """Run one report after another and print each line as soon as it is measured."""
    for module in (grading, diagnosis, page, preview, configs, handout, head, checkpoint):
        print(f"\n{(module.__doc__ or '').splitlines()[0]}")
        for line in module.report():
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
