"""The curl lines of docs/served.md are executed."""

import re
import subprocess
from pathlib import Path

from forge import replay
from tests.serve.served import desk, serving

PAGE = (Path(__file__).parents[2] / "docs" / "served.md").read_text(encoding="utf-8")


def test_the_lines_do_what_the_page_says(tmp_path: Path) -> None:
    (script,) = re.findall(r"^```bash\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    with serving(tmp_path) as running:
        lines = "set -e\n" + script.replace("http://127.0.0.1:8082", running.url)
        done = subprocess.run(["/bin/bash", "-c", lines], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        assert '"name": "refund"' in done.stdout
        assert '"outcome":{"type":"completed","tool":"refund","value":"refunded 100"}' in done.stdout
        with running.client() as client:
            assert client.get("/v1/runs").json()["runs"] == []
    assert replay(tmp_path / "run.jsonl", desk).unwrap().value == "refunded 100"
