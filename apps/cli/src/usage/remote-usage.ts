import { parseStoreUrl } from "@throughline/config";
import type { UsageReport } from "@throughline/usage";
import type { UsageQuery } from "@throughline/usage/internal";
import type { CommandContext } from "../command.ts";
import { namedFormat } from "../program-names.ts";
import { createAskServer } from "../server/ask-server.ts";
import type { SessionFilter } from "../session-filter.ts";
import { pricesOf } from "./usage-file.ts";

type RemoteReport = Omit<UsageReport, "unread" | "read"> & {
  readonly unread: readonly { readonly key: string; readonly message: string }[];
};

/** Holds what the command prints of a report. */
export type PrintedReport = Omit<UsageReport, "unread" | "read"> & {
  readonly unread: readonly { readonly key: string; readonly error: Pick<Error, "message"> }[];
};

/**
 * Asks a server for the sums, which keeps them between questions. Null when the server cannot answer: for a store that
 * is no server, for prices of this configuration, and for folders, which are compared on this machine.
 */
export async function remoteUsage(
  context: CommandContext,
  { by, sinceMs, untilMs, model, namespace, agentId }: UsageQuery,
  { program, folder, here }: SessionFilter,
): Promise<PrintedReport | null> {
  const address = parseStoreUrl(context.storeUrl, context.host.workingDirectory);
  const hasPrices = Object.keys(pricesOf(context)).length > 0;
  if (address.scheme !== "http" || hasPrices || folder !== undefined || here === true) return null;
  const { unread, ...report } = await createAskServer(
    address.url,
    context,
  )<RemoteReport>({
    path: "/usage",
    query: {
      by: by?.join(","),
      sinceMs,
      untilMs,
      model,
      agent: agentId,
      timeZone: new Intl.DateTimeFormat().resolvedOptions().timeZone,
      program: program === undefined ? undefined : namedFormat(program).join(","),
    },
    ...(namespace === undefined || namespace === "" ? {} : { namespace }),
  });
  return { ...report, unread: unread.map(({ key, message }) => ({ key, error: { message } })) };
}
