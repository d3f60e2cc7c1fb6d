// Copies a store to read it, and is killed before the copy is gone again.
import process from "node:process";
import { copyToRead } from "../src/open-unwritable.ts";
import { defaultDriver } from "../src/connection.ts";

const [path = ""] = process.argv.slice(2);
copyToRead(path, defaultDriver);
process.kill(process.pid, "SIGKILL");
