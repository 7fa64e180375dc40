# SPDX-License-Identifier: Apache-2.0
"""tools/site makes the pages of the documents and the headers without a warning; every link from page to page leads somewhere.
check_site.py ROOT; 77 without Doxygen."""
import pathlib
import re
import subprocess
import sys
import tempfile


def main(root):
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([root / "tools/site", folder], capture_output=True, text=True)
        if done.returncode == 77:
            print(done.stderr)
            return 77
        assert done.returncode == 0, done.stdout + done.stderr
        html = {file.name: file.read_text() for file in pathlib.Path(folder, "html").glob("*.html")}
    names = {name: set(re.findall(r'(?:id|name)="([^"]+)"', text)) for name, text in html.items()}
    wrong = []
    for name, text in html.items():
        for page, anchor in re.findall(r'href="([^"#:]*)(?:#([^"]+))?"', text):
            if page.endswith(".html") and page not in names or anchor and page in names and anchor not in names[page]:
                wrong.append(f"{name}: {page}#{anchor}")
    assert not wrong, "\n".join(wrong[:20])
    pages = [file.relative_to(root).with_suffix("").as_posix() for file in (root / "docs").rglob("*.md")]
    missing = [page for page in pages if "page_" + re.sub(r"\W", "_", page) + ".html" not in html]
    assert len(pages) > 30 and not missing, missing
    assert all(word in html["run_8h.html"] for word in ("gantry_run_new", "gantry_run_options", "gantry_run_wait"))
    wrong_use = subprocess.run([root / "tools/site"], capture_output=True, text=True)
    assert wrong_use.returncode == 2 and "usage: tools/site FOLDER" in wrong_use.stderr, wrong_use
    print(f"{len(html)} pages, {len(pages)} of them documents")
    return 0


sys.exit(main(pathlib.Path(sys.argv[1]).resolve()))
