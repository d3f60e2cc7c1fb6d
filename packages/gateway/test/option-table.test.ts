import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll } from "vitest";
import * as exported from "@throughline/gateway";
import { createMemoryStore } from "@throughline/store-memory";
import { describeOptions } from "@throughline/test-kit/options";
import { gatewayTable } from "../src/create-gateway.ts";

const folder = mkdtempSync(join(tmpdir(), "throughline-gateway-options-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describeOptions(exported, [
  {
    name: "createGateway",
    table: gatewayTable,
    valid: { store: createMemoryStore(), upstreams: {}, spoolFolder: join(folder, "spool"), authenticate: () => null },
    code: "CONFIG_INVALID",
    call: async (options) => (await exported.createGateway(options)).close(),
  },
]);
