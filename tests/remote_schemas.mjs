// Checks documents of Kubernetes against the schemas of the npm package kubernetes-models.
//   node remote_schemas.mjs FOLDER FILE...     FOLDER has node_modules with kubernetes-models and yaml
// Prints a line for each document: its kind, and what is wrong.
import fs from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [folder, ...files] = process.argv.slice(2);
const require = createRequire(folder + "/");
const { parseAllDocuments } = require("yaml");

for (const file of files) {
  for (const parsed of parseAllDocuments(fs.readFileSync(file, "utf8"))) {
    const document = parsed.toJS();
    const model = `${folder}/node_modules/kubernetes-models/${document.apiVersion}/${document.kind}.js`;
    const { [document.kind]: Model } = await import(pathToFileURL(model));
    let wrong = "";
    try {
      new Model(document).validate();
    } catch (error) {
      wrong = " " + String(error.message).replaceAll("\n", "; ");
    }
    console.log(document.kind + wrong);
  }
}
