"""Check the conda recipe as conda-forge's build tool, rattler-build, reads it; a part of `make release-check`.

``python tools/recipe.py`` parses ``recipe/recipe.yaml`` strictly (unknown fields, licences, versions, hashes) and
renders it for every platform and version of Python. Needs ``py-rattler-build`` from the package index.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RECIPE = ROOT / "recipe" / "recipe.yaml"
PLATFORMS = ("linux-64", "linux-aarch64", "osx-64", "osx-arm64", "win-64")
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")


def check(path: Path = RECIPE) -> str:
    """Parse and render the recipe, and compare its version with that of the sources; what was checked, or an error."""
    import rattler_build

    try:
        recipe = rattler_build.Stage0Recipe.from_yaml(path.read_text(encoding="utf-8"))
        variants = rattler_build.VariantConfig(
            {"python": [f"{version}.*" for version in PYTHONS], "c_stdlib": ["sysroot"], "c_stdlib_version": ["2.17"]}
        )
        for platform in PLATFORMS:
            config = rattler_build.PlatformConfig(
                target_platform=platform, build_platform="linux-64", host_platform=platform
            )
            rendered = recipe.render(variants, rattler_build.RenderConfig(platform=config))
            if len(rendered) != len(PYTHONS):
                raise SystemExit(f"{path.name} gives {len(rendered)} packages on {platform} instead of {len(PYTHONS)}")
    except rattler_build.RattlerBuildError as error:
        raise SystemExit(f"{path.name}: {error}") from error
    sources = (ROOT / "src" / "scboost" / "_version.py").read_text(encoding="utf-8")
    version = re.sub(r"\.dev\d+|rc\d+", "", re.findall(r'__version__ = "([^"]+)"', sources)[0])
    if rendered[0].recipe.package.version != version:
        raise SystemExit(f"{path.name} has version {rendered[0].recipe.package.version}, the sources have {version}")
    return f"conda recipe {version}: read by rattler-build for {len(PLATFORMS)} platforms, {len(PYTHONS)} Pythons"


if __name__ == "__main__":
    print(check())
