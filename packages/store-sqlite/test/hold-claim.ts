// Claims a path. With "hold" it says so and stays until it is killed; with a number it claims and lets go so often, and
// says how often it got it. Whoever else is inside at the same time makes it fail.
import { rmSync, writeFileSync } from "node:fs";
import process from "node:process";
import { claim } from "../src/claim-file.ts";
import { defaultDriver } from "../src/connection.ts";

const [path = "", timesText = "hold"] = process.argv.slice(2);
if (timesText === "hold") {
  const release = claim(path, defaultDriver);
  if (release === null) throw new Error("somebody else holds it");
  process.stdout.write("held\n");
  // What nobody can let go of any more would be collected, and let go.
  setInterval(() => void release, 1000);
} else {
  let got = 0;
  for (let each = 0; each < Number(timesText); each++) {
    const release = claim(path, defaultDriver);
    if (release !== null) {
      got++;
      writeFileSync(`${path}.inside`, "", { flag: "wx" });
      rmSync(`${path}.inside`);
      release();
    }
    await new Promise((resolve) => void setImmediate(resolve));
  }
  process.stdout.write(`${got}\n`);
}
