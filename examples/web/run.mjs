// node run.mjs: the model without a browser.
import { readFile } from "node:fs/promises";
import { load } from "./model.js";

const mul = await load(await readFile(new URL("model.wasm", import.meta.url)));
console.log(mul([1, 2, 3, 4, 5, 6, 7, 8], [10, 20, 30, 40, 50, 60, 70, 80]).join(" "));
