"""The page of vm-serve at "/", in a headless Chromium: it lists the models, tries one with numbers, and loads nothing from
elsewhere. With --screenshot=FILE it also makes the picture of the documents."""
import base64
import json
import os
import shutil
import subprocess
import sys
import tempfile

import serve_client
import vmrun

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MUL = os.path.join(vmrun.SOURCE, "examples", "inline_mul.vmasm")
FIB = os.path.join(vmrun.SOURCE, "examples", "fib.vmasm")


class Browser:
    """Chromium, spoken to over its pipe: JSON messages that end in a zero byte, on descriptors 3 and 4."""

    def __init__(self, folder):
        to_browser, self.writer = os.pipe()
        self.reader, from_browser = os.pipe()

        def descriptors():
            # Not in the way of each other: both first go up.
            read, write = os.dup2(to_browser, 30), os.dup2(from_browser, 31)
            os.dup2(read, 3)
            os.dup2(write, 4)

        self.process = subprocess.Popen([BROWSER, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                                         "--disable-background-networking", "--remote-debugging-pipe", "--window-size=900,900",
                                         f"--user-data-dir={folder}"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL, close_fds=False, preexec_fn=descriptors)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.writer, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.buffer:
                part = os.read(self.reader, 1 << 20)
                if not part:
                    raise EOFError("the browser has ended")
                self.buffer += part
            line, self.buffer = self.buffer.split(b"\0", 1)
            answer = json.loads(line)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        """The value of an expression, or of what it promises."""
        result = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"])
        return result["result"].get("value")

    def wait_for(self, condition):
        self.evaluate("new Promise((done) => { const look = () => %s ? done() : setTimeout(look, 20); look(); })" % condition)

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.writer)
        os.close(self.reader)


def main(checks):
    if not BROWSER:
        vmrun.skip("there is no Chromium; it is in the Debian package chromium")
    screenshot = next((flag.split("=", 1)[1] for flag in sys.argv[1:] if flag.startswith("--screenshot=")), None)

    def check(name, found, expected):
        checks.check(name, None if found == expected else f"expected {expected!r}, found {found!r}")

    with tempfile.TemporaryDirectory(prefix="halyard-page-", ignore_cleanup_errors=True) as folder, \
         serve_client.Server(os.path.join(vmrun.BIN, "vm-serve"), f"--model=mul={MUL}", f"--model=fib:recursive={FIB}") as server:
        browser = Browser(folder)
        try:
            browser.call("Network.enable")
            browser.call("Log.enable")
            browser.call("Runtime.enable")
            browser.call("Page.enable")
            address = f"http://127.0.0.1:{server.port}/"
            browser.call("Page.navigate", url=address)
            browser.wait_for("document.body && document.body.dataset.state === 'shown'")
            check("models", browser.evaluate("[...document.querySelectorAll('h2')].map((each) => each.textContent)"), ["fib", "mul"])
            check("states", browser.evaluate("[...document.querySelectorAll('section .ready')].map((each) => each.textContent)"), ["ready", "ready"])
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
            # The lines that a browser writes about the expected answer 400 and about the missing icon.
            said = [event["params"]["entry"]["text"] for event in browser.events if event.get("method") == "Log.entryAdded"]
            check("complaints", [text for text in said if "400" not in text and "404" not in text], [])
            check("exceptions", [event for event in browser.events if event.get("method") == "Runtime.exceptionThrown"], [])
        finally:
            browser.close()
        check("exit status", server.stop(), 0)
