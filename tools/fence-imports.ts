import { registerHooks } from "node:module";
import process from "node:process";

// Loaded into the process that runs a fence of a README. The fence's file lies in a temporary folder that has no
// packages, so what it imports by name is looked up from the package whose README it stands in.
const importer = process.env["THROUGHLINE_DOC_IMPORTER"];

registerHooks({
  resolve(specifier, context, nextResolve) {
    const isFence = context.parentURL !== undefined && /\/fence-\d+\.ts$/.test(context.parentURL);
    if (!isFence || importer === undefined || /^(?:[./]|node:|file:|data:)/.test(specifier)) {
      return nextResolve(specifier, context);
    }
    return nextResolve(specifier, { ...context, parentURL: importer });
  },
});
