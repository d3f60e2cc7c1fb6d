import { enableCompileCache } from "node:module";

enableCompileCache();
// By its own name, so that the export condition decides: sources in a checkout, the bundle once installed.
await import("@throughline/cli");
