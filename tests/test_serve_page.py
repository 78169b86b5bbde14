"""The page of vm-serve at "/", in a headless Chromium: it lists the models, tries one with numbers, and loads nothing from
elsewhere. With --screenshot=FILE it also makes the picture of the documents."""
import base64
import json
import os
import sys
import tempfile

import serve_client
import vmrun
from browser import BROWSER, MISSING, Browser

MUL = os.path.join(vmrun.SOURCE, "examples", "inline_mul.vmasm")
MATMUL = os.path.join(vmrun.SOURCE, "examples", "matmul.vmasm")
FIB = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")


def main(checks):
    if not BROWSER:
        vmrun.skip(MISSING)
    screenshot = next((flag.split("=", 1)[1] for flag in sys.argv[1:] if flag.startswith("--screenshot=")), None)

    def check(name, found, expected):
        checks.check(name, None if found == expected else f"expected {expected!r}, found {found!r}")

    with tempfile.TemporaryDirectory(prefix="halyard-page-", ignore_cleanup_errors=True) as folder, \
         serve_client.Server(os.path.join(vmrun.BIN, "vm-serve"), f"--model=mul={MUL}", f"--model=fib:recursive={FIB}",
                            f"--model=product={MATMUL}", "--device=local-sync") as server:
        browser = Browser(folder)
        try:
            browser.call("Network.enable")
            browser.call("Log.enable")
            browser.call("Runtime.enable")
            browser.call("Page.enable")
            address = f"http://127.0.0.1:{server.port}/"
            browser.call("Page.navigate", url=address)
            browser.wait_for("document.body && document.body.dataset.state === 'shown'")
            check("models", browser.evaluate("[...document.querySelectorAll('h2')].map((each) => each.textContent)"), ["fib", "mul", "product"])
            check("states", browser.evaluate("[...document.querySelectorAll('section .ready')].map((each) => each.textContent)"), ["ready"] * 3)
            check("version", browser.evaluate("document.getElementById('server').textContent !== ''"), True)

            def try_it(section, shape, numbers):
                browser.evaluate(f"""(() => {{
                    const section = document.querySelectorAll('section')[{section}];
                    section.querySelector('pre').textContent = '';
                    section.querySelectorAll('input.shape').forEach((input) => input.value = {json.dumps(shape)});
                    section.querySelectorAll('input:not(.shape)').forEach((input, place) => input.value = {json.dumps(numbers)}[place]);
                    section.querySelector('button').click();
                }})()""")
                browser.wait_for(f"document.querySelectorAll('section')[{section}].querySelector('pre').textContent !== ''")
                return browser.evaluate(f"document.querySelectorAll('section')[{section}].querySelector('pre').textContent")

            check("links", browser.evaluate("[...document.querySelectorAll('section a')].map((each) => each.getAttribute('href'))"),
                  ["/v2/models/fib/page", "/v2/models/mul/page", "/v2/models/product/page"])
            check("fib", try_it(0, "1", ["20"]).split("\n")[:2], ["output0: INT32 [1]", "6765"])
            check("mul", try_it(1, "3", ["1, 2.5, -3", "10"]).split("\n")[:2], ["output0: FP32 [3]", "10 25 -30"])
            check("an error", try_it(1, "3", ["1 2", "1"]).split(" ")[0], "400:")
            try_it(1, "3", ["1, 2.5, -3", "10"])
            if screenshot:
                height = browser.evaluate("document.documentElement.scrollHeight")
                picture = browser.call("Page.captureScreenshot", clip={"x": 0, "y": 0, "width": 900, "height": height, "scale": 1},
                                       captureBeyondViewport=True)
                vmrun.write(screenshot, base64.b64decode(picture["data"]))
            browser.evaluate("1")
            wanted = [event["params"]["request"]["url"] for event in browser.events if event.get("method") == "Network.requestWillBeSent"]
            check("requests to others", [url for url in wanted if not url.startswith((address, "about:", "data:"))], [])
            checks.check("requests", None if len(wanted) > 6 else f"only {wanted}")
            browser.call("Page.navigate", url=address + "v2/models/product/page")
            browser.wait_for("document.body && document.body.dataset.state === 'shown' && document.getElementById('graph')")
            check("the page of a model", browser.evaluate("document.getElementById('facts').textContent").split(",")[0], "matmul.vmasm")
            check("its nodes", browser.evaluate("graph.nodes.map((node) => node.title)"), ["input0", "input1", "matmul", "result"])
            browser.call("Page.navigate", url=address + "v2/models/mul/page")
            browser.wait_for("document.body && document.body.dataset.state === 'shown' && document.getElementById('graph')")
            check("a program without devices", browser.evaluate("document.getElementById('empty').textContent"), "This function gives no work to a device.")
            # The lines that a browser writes about the expected answer 400 and about the missing icon.
            said = [event["params"]["entry"]["text"] for event in browser.events if event.get("method") == "Log.entryAdded"]
            check("complaints", [text for text in said if "400" not in text and "404" not in text], [])
            check("exceptions", [event for event in browser.events if event.get("method") == "Runtime.exceptionThrown"], [])
        finally:
            browser.close()
        check("exit status", server.stop(), 0)
