import process from "node:process";
import type { Environment } from "@throughline/core/internal";

/** Reads the environment variables of this process. */
export const systemEnvironment: Environment = { get: (name) => process.env[name] };
