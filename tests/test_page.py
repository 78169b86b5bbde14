"""The page of vm-dump --html and of vm-run --profile=FILE.html: what it contains, and in a headless Chromium: the graph, search,
zoom, keys, light and dark, times and memory of a run, errors of a comparison, hostile names, a thousand steps.
With --screenshot=FILE it also makes the picture of the documents, of the module or page (.html) after the flag."""
import base64
import json
import os
import re
import sys
import tempfile

import vmrun
from browser import BROWSER, MISSING, Browser

MATMUL = os.path.join(vmrun.SOURCE, "examples", "matmul.vmasm")
HOSTILE = "</script><script>window.hacked=1</script><img src=x onerror=window.hacked=1>\u2028'\"&amp;"
EVIL = """vm.module @%(name)s bytecode 17
vm.dependency @hal 6
vm.import @hal.devices.get cconv "0i_r"
vm.import @hal.device.queue.alloca cconv "0rIrrIiiII_r"
vm.import @hal.command_buffer.create cconv "0riiIi_r"
vm.import @hal.command_buffer.dispatch cconv "0rriiiiICiDCiirIID_v"
vm.import @hal.command_buffer.finalize cconv "0r_v"
vm.import @hal.device.queue.execute cconv "0rIrrrI_v"
vm.import @hal.executable.create cconv "0rIrrr_r"
vm.rodata[0] = "vmvx-bytecode-fb"
vm.rodata[1] = module {
  vm.module @kernels
  vm.export @%(name)s
  vm.attr @%(name)s "binding_count" "2"
  vm.func @%(name)s(%%r0: !vm.buffer, %%r1: !vm.buffer, %%r2: !vm.list<!vm.buffer>, %%i0: i32, %%i1: i32, %%i2: i32, %%i3: i32, %%i4: i32, %%i5: i32, %%i6: i32, %%i7: i32, %%i8: i32) -> () {
    %%i9 = vm.const.i32.zero
    %%i10 = vm.const.i32 1
    %%i12:13 = vm.const.i64.zero
    %%r3 = vm.list.get.ref %%r2, %%i9 : !vm.buffer
    %%r4 = vm.list.get.ref %%r2, %%i10 : !vm.buffer
    %%i14 = vm.buffer.load.i32 %%r3, %%i12:13
    vm.buffer.store.i32 %%i14, %%r4, %%i12:13
    vm.return
  }
}
vm.export @%(name)s
vm.attr @%(name)s "iree.abi.declaration" %(name)s
vm.func @%(name)s() -> () {
  %%i20 = vm.const.i32.zero
  %%i22:23 = vm.const.i64.zero
  %%i24:25 = vm.const.i64 -1
  %%i26 = vm.const.i32 48
  %%i27 = vm.const.i32 3075
  %%i28:29 = vm.const.i64 4096
  %%i30 = vm.const.i32 1
  %%r10 = vm.call @hal.devices.get(%%i20)
  %%r2 = vm.const.ref.rodata 0
  %%r3 = vm.const.ref.rodata 1
  %%r4 = vm.call @hal.executable.create(%%r10, %%i24:25, %%r2, %%r3, %%r11)
  %%r5 = vm.call @hal.device.queue.alloca(%%r10, %%i24:25, %%r11, %%r11, %%i22:23, %%i26, %%i27, %%i28:29, %%i22:23)
  %%i31 = vm.const.i32 3
  %%r6 = vm.call @hal.command_buffer.create(%%r10, %%i30, %%i31, %%i24:25, %%i20)
%(body)s  vm.call @hal.command_buffer.finalize(%%r6)
  vm.call @hal.device.queue.execute(%%r10, %%i24:25, %%r11, %%r11, %%r6, %%i22:23)
  vm.return
}
"""
DISPATCH = ("  %i32:33 = vm.const.i64 {offset}\n  %i36:37 = vm.const.i64 {source}\n  vm.call.variadic @hal.command_buffer.dispatch segments[65535, 65535, 65535, 65535, 65535, "
            "65535, 65535, 0, 2](%r6, %r4, %i20, %i30, %i30, %i30, %i22:23, %i20, %i20, %r5, %i36:37, %i34:35, %i20, %i20, %r5, %i32:33, %i34:35)\n")


def quoted(text):
    """A string of vmasm, with escapes."""
    return 'e"' + "".join(chr(byte) if 0x20 <= byte < 0x7F and chr(byte) not in '"\\' else f"\\x{byte:02X}" for byte in text.encode()) + '"'


def program(name, dispatches):
    """Dispatches in chains: each reads the first bytes and writes other ones."""
    body = "  %i34:35 = vm.const.i64 64\n" + "".join(DISPATCH.format(offset=64 * (i * 7 % 60), source=64 * ((i - 1 - i % 3) * 7 % 60)) for i in range(dispatches))
    return EVIL % {"name": quoted(name), "body": body}


def data_of(page):
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', vmrun.read_text(page), re.DOTALL)[1])


class Page:
    def __init__(self, checks, folder):
        self.checks, self.folder = checks, folder
        self.browser = Browser(os.path.join(folder, "profile"))
        for domain in ("Network", "Log", "Runtime", "Page"):
            self.browser.call(domain + ".enable")

    def check(self, name, found, expected):
        self.checks.check(name, None if found == expected else f"expected {expected!r}, found {found!r}")

    def show(self, path):
        self.browser.call("Page.navigate", url="file://" + path)
        self.browser.wait_for("document.body && document.body.dataset.state === 'shown'")

    def js(self, expression):
        return self.browser.evaluate(expression)

    def key(self, key):
        self.js("document.dispatchEvent(new KeyboardEvent('keydown', {key: %s, bubbles: true}))" % json.dumps(key))

    def frame(self):
        self.js("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")


def dump(checks, name, page, *arguments):
    checks.check(name, None if (done := vmrun.run("vm-dump", *arguments, f"--html={page}")).returncode == 0 and done.stdout == "" else done.stderr, done)


def look_at_matmul(page, checks, folder):
    path = os.path.join(folder, "matmul.html")
    dump(checks, "dump", path, MATMUL)
    page.show(path)
    page.check("titles", page.js("graph.nodes.map((node) => node.title)"), ["input0", "input1", "matmul", "result"])
    page.check("edges", page.js("graph.nodes.map((node) => node.before)"), [[], [], [0, 1], [2]])
    page.check("rows", page.js("graph.nodes.map((node) => node.row)"), [0, 0, 1, 2])
    page.check("pixels are drawn", page.js("""(() => { const canvas = byId('graph');
        return canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.some((byte) => byte !== 0); })()"""), True)
    page.check("peak", "104 bytes" in page.js("byId('memory').textContent"), True)
    page.check("requirements", "vmvx-bytecode-fb" in page.js("byId('module').textContent"), True)
    page.check("profile says how", "vm-run --profile" in page.js("byId('profile').textContent"), True)
    page.js("byId('search').value = 'matmul'; byId('search').dispatchEvent(new Event('input'))")
    page.check("found", page.js("[...graph.matches]"), [2])
    page.js("byId('search').dispatchEvent(new KeyboardEvent('keydown', {key: 'Enter', bubbles: true}))")
    page.check("chosen by search", page.js("graph.chosen"), 2)
    page.check("details", [word in page.js("byId('details').textContent") for word in ("matmul+", "2 × 4 × 1", "input0", "48 bytes", "write")], [True] * 5)
    page.key("ArrowUp")
    page.check("up", page.js("graph.chosen"), 0)
    page.key("ArrowRight")
    page.check("right", page.js("graph.chosen"), 1)
    page.key("ArrowDown")
    page.key("ArrowDown")
    page.check("down", page.js("graph.chosen"), 3)
    page.key("j")
    page.check("j", page.js("graph.nodes[graph.chosen].step"), 0)
    scale = page.js("graph.scale")
    page.key("+")
    page.check("larger", page.js("graph.scale") > scale, True)
    page.key("0")
    page.check("fits", page.js("graph.scale") <= 1.2, True)
    back = page.js("getComputedStyle(document.body).backgroundColor")
    for theme in ("light", "dark"):
        page.key("t")
        page.check(theme, page.js("document.documentElement.dataset.theme"), theme)
        page.check(f"{theme} colours", page.js("getComputedStyle(document.body).backgroundColor"), {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[theme])
    page.key("t")
    page.check("as the system", page.js("getComputedStyle(document.body).backgroundColor"), back)
    page.browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])
    page.check("the system's dark", page.js("getComputedStyle(document.body).backgroundColor"), "rgb(20, 24, 29)")
    page.browser.call("Emulation.setEmulatedMedia", features=[])
    page.key("?")
    page.check("keys", page.js("byId('keys').open"), True)


def look_at_a_profile(page, checks, folder):
    path = os.path.join(folder, "run.html")
    done = vmrun.run("vm-run", f"--module={MATMUL}", "--function=matmul", "--input=4x3xf32=1", "--input=3x2xf32=2", "--device=local-sync",
                     "--jit=off", f"--profile={path}")
    checks.check("run", None if done.returncode == 0 and "4x2xf32=" in done.stdout else done.stderr, done)
    page.show(path)
    page.check("a time", page.js("current.steps[0].profile.time_ns > 0 && current.steps[0].profile.own"), True)
    page.check("calls", page.js("current.steps[0].profile.calls"), 1)
    page.check("its rows", page.js("byId('profile').textContent").count("matmul") >= 1, True)
    page.check("colour by time", page.js("byId('colour').value"), "time")
    page.check("measured memory", "Measured on local-sync" in page.js("byId('memory').textContent"), True)
    page.check("memory over time", "over" in page.js("byId('level').textContent"), True)
    look_at_a_comparison(page, checks, folder)
    # The errors of a comparison, as other tools give them.
    data = data_of(path)
    data["diff"] = {"function": "matmul", "steps": [{"name": "matmul", "occurrence": 0, "max_abs": 0.5, "max_ulps": 2, "elements": 1}]}
    text = vmrun.read_text(path)
    begin = text.index('id="data">') + len('id="data">')
    changed = text[:begin] + json.dumps(data) + text[text.index("</script>", begin):]
    vmrun.write(path, changed.encode())
    page.show(path)
    page.check("colour by error", page.js("byId('colour').value"), "error")
    page.js("graph.choose(nodeOfStep(0))")
    page.check("error", "largest distance in ulps2" in page.js("byId('details').textContent"), True)


def look_at_a_compiled_program(page, checks, folder):
    """Its functions have no names, so its places have numbers; each step finds its own time and error."""
    fixtures = vmrun.fixtures()
    if not fixtures:
        return
    path, report = os.path.join(folder, "mlp.html"), os.path.join(folder, "mlp.json")
    module = os.path.join(fixtures, "compiled", "pipeline_chain.vmvx.vmfb")
    call = ["--function=chain", f"--input=@{fixtures}/compiled/pipeline_chain.0.in0.npy", "--device=local-task"]
    done = vmrun.run("vm-diff", module, *call, "--b=--input=16x16xf32=1", f"--json={report}")
    checks.check("vm-diff of a compiled program", None if done.returncode == 2 else done.stderr, done)
    done = vmrun.run("vm-run", f"--module={module}", *call, f"--profile={path}", f"--diff={report}")
    checks.check("run of a compiled program", None if done.returncode == 0 else done.stderr, done)
    page.show(path)
    page.check("places without names", page.js("current.steps.every((step) => step.place.startsWith('@'))"), True)
    page.check("each step has its own time", page.js("current.steps.map((step) => step.profile.own)"), page.js("current.steps.map(() => true)"))
    page.check("each kernel has its error", page.js("current.steps.filter((step) => step.kind === 'dispatch').every((step) => step.error)"), True)


def look_at_a_comparison(page, checks, folder):
    """The report of vm-diff, on the pages of vm-run and vm-dump."""
    report, compared = os.path.join(folder, "report.json"), os.path.join(folder, "compared.html")
    inputs = ["--input=4x3xf32=1", "--input=3x2xf32=2"]
    done = vmrun.run("vm-diff", MATMUL, "--function=matmul", "--device=local-sync", *inputs, "--b=--input=4x3xf32=1.5 --input=3x2xf32=2", f"--json={report}")
    checks.check("vm-diff", None if done.returncode == 2 else done.stderr, done)
    for name, arguments in (("vm-run", [f"--module={MATMUL}", "--function=matmul", *inputs, "--device=local-sync", f"--profile={compared}"]),
                            ("vm-dump", [MATMUL, f"--html={compared}"])):
        done = vmrun.run(name, *arguments, f"--diff={report}")
        checks.check(f"{name} --diff", None if done.returncode == 0 else done.stderr, done)
        page.show(compared)
        page.check(f"colour by error, {name}", page.js("byId('colour').value"), "error")
        page.check(f"the step, {name}", page.js("[current.steps[0].error.beyond, current.steps[0].error.max_abs, current.steps[0].error.elements]"), [True, 3, 8])
        page.check(f"the first, {name}", "The first step beyond tolerance is 0: matmul" in page.js("byId('steps').textContent"), True)
        page.js("graph.choose(nodeOfStep(0))")
        page.check(f"error, {name}", "errorbeyond tolerance" in page.js("byId('details').textContent"), True)
    for name, arguments, message in (("vm-dump", [MATMUL, f"--diff={report}"], "--html"), ("vm-run", [f"--module={MATMUL}", f"--diff={report}"], "--profile"),
                                     ("vm-dump", [MATMUL, f"--html={compared}", f"--diff={MATMUL}"], "vm-diff --json"),
                                     ("vm-dump", [MATMUL, f"--html={compared}", f"--diff={folder}/none.json"], "none.json")):
        done = vmrun.run(name, *arguments)
        checks.check(f"{name}, wrong report", vmrun.why_bad_failure(done, message), done)
    wrong = os.path.join(folder, "wrong.json")
    for text in ("{}", "[1]", "null", '{"differences": [{}], "first_beyond": null}', '{"differences": 5}', '{"differences": [{"tensors": 7}]}'):
        vmrun.write(wrong, text.encode())
        done = vmrun.run("vm-dump", MATMUL, f"--html={compared}", f"--diff={wrong}")
        checks.check(f"wrong report {text}", vmrun.why_bad_failure(done, "vm-diff --json"), done)


def look_at_hostile_names(page, checks, folder):
    module = os.path.join(folder, "hostile.vmasm")
    vmrun.write(module, program(HOSTILE, 3).encode())
    path = os.path.join(folder, "hostile.html")
    dump(checks, "hostile", path, module)
    text = vmrun.read_text(path)
    page.check("no markup of the module", "<img" in text or "window.hacked=1</script>" in text, False)
    page.check("one end of each script", text.count("</script>"), 2)
    page.show(path)
    for tab in ("details", "memory", "steps", "profile", "module"):
        page.js(f"openTab('{tab}')")
    page.js("graph.choose(nodeOfStep(1))")
    page.frame()
    page.check("not run", page.js("window.hacked"), None)
    page.check("elements of the module", page.js("document.querySelectorAll('img, script').length"), 2)
    page.check("shown as text", page.js("byId('details').querySelector('h2').textContent"), HOSTILE)
    page.check("title", page.js("byId('title').textContent"), HOSTILE)


def look_at_many_steps(page, checks, folder):
    module = os.path.join(folder, "many.vmasm")
    vmrun.write(module, program("many", 1000).encode())
    path = os.path.join(folder, "many.html")
    dump(checks, "many", path, module)
    page.show(path)
    page.check("nodes", page.js("graph.nodes.length"), 1000)
    timed = os.path.join(folder, "timed.html")
    done = vmrun.run("vm-run", f"--module={module}", "--device=local-sync", f"--profile={timed}")
    checks.check("a run of many", None if done.returncode == 0 else done.stderr, done)
    page.show(timed)
    page.check("times of their own", page.js("current.steps.filter((step) => step.profile && step.profile.own && step.profile.calls === 1 && step.profile.time_ns > 0).length"), 1000)
    page.check("shares", page.js("Math.abs(current.steps.reduce((sum, step) => sum + step.profile.share, 0) - profile.rows.find((row) => row.kind === 'kernel').share) < 1e-3"), True)
    page.show(path)
    page.check("edges", page.js("graph.nodes.filter((node) => node.before.length === 1).length") > 900, True)
    page.js("graph.fit()")
    page.frame()
    # What one frame costs: the whole graph, then a part of it. A frame of 60 a second has 16 ms; the machine may be busy, so the
    # best of several counts.
    costs = page.js("""(() => { const best = () => { let least = 1e9;
        for (let i = 0; i < 9; ++i) { const begin = performance.now(); graph.paint(); least = Math.min(least, performance.now() - begin); } return least; };
        const whole = best(); graph.zoom(30); return [whole, best()]; })()""")
    checks.check("a frame", None if max(costs) < 50 else f"painting took {costs} ms")
    page.js("(async () => { for (let i = 0; i < 20; ++i) { graph.x -= 5; graph.draw(); await new Promise(requestAnimationFrame); } })()")
    page.check("frames are merged", page.js("(() => { const before = graph.frames; for (let i = 0; i < 100; ++i) graph.draw(); return graph.frames - before; })()"), 0)


def screenshot(browser, module, path, target):
    """The picture of the documents, as SVG with the picture in it would be larger: a PNG."""
    browser.call("Emulation.setDeviceMetricsOverride", width=1200, height=700, deviceScaleFactor=1, mobile=False)
    if module.endswith(".html"):
        path = os.path.abspath(module)
    else:
        vmrun.succeeds("vm-dump", module, f"--html={path}")
    browser.call("Page.navigate", url="file://" + path)
    browser.wait_for("document.body && document.body.dataset.state === 'shown'")
    browser.evaluate("graph.scale = 0.8; graph.choose(nodeOfStep(Math.floor(current.steps.length / 3))); openTab('steps')")
    browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    vmrun.write(target, base64.b64decode(browser.call("Page.captureScreenshot")["data"]))


def main(checks):
    with tempfile.TemporaryDirectory(prefix="halyard-page-", ignore_cleanup_errors=True) as folder:
        done = vmrun.run("vm-dump", MATMUL, f"--html={folder}")
        checks.check("a folder", vmrun.why_bad_failure(done, folder), done)
        if os.path.exists(os.path.join(vmrun.BIN, "vm-bench")):
            done = vmrun.run("vm-bench", f"--module={MATMUL}", "--profile=page.html")
            checks.check("vm-bench", vmrun.why_bad_failure(done, "vm-run writes pages"), done)
        if not BROWSER:
            return checks.failed or vmrun.skip(MISSING)
        page = Page(checks, folder)
        try:
            wanted = next((flag.split("=", 1)[1] for flag in sys.argv[1:] if flag.startswith("--screenshot=")), None)
            if wanted:
                screenshot(page.browser, sys.argv[-1], os.path.join(folder, "picture.html"), wanted)
            for look in (look_at_matmul, look_at_a_profile, look_at_a_compiled_program, look_at_hostile_names, look_at_many_steps):
                look(page, checks, folder)
            page.js("1")
            urls = [event["params"]["request"]["url"] for event in page.browser.events if event.get("method") == "Network.requestWillBeSent"]
            page.check("nothing from elsewhere", [url for url in urls if not url.startswith(("file://" + folder, "about:"))], [])
            page.check("exceptions", [event["params"] for event in page.browser.events if event.get("method") == "Runtime.exceptionThrown"], [])
            said = [event["params"]["entry"]["text"] for event in page.browser.events if event.get("method") == "Log.entryAdded"]
            page.check("complaints", said, [])
        finally:
            page.browser.close()
