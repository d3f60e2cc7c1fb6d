import { everywhere, type JsonObject } from "./openapi-document.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly {
    readonly name: string;
    readonly in: string;
    readonly required: boolean;
    readonly description?: string;
  }[];
  readonly requestBody?: { readonly required: boolean; readonly content: JsonObject };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: JsonObject }>>;
}

const begin = `# HTTP API

Written by \`node --conditions=@throughline/source tools/check-openapi.ts --write\` from the schemas that check the requests; the
check fails when they differ. [openapi.json](openapi.json) is the same as OpenAPI 3.1.

\`throughline serve\` answers below \`/api/v1\`. Send a token as \`authorization: Bearer TOKEN\`. Bodies are JSON, times are UTC
milliseconds. A list is \`{"kind":"list","items":[…],"count":N,"nextCursor":null}\`; with \`accept: application/x-ndjson\` it is one
object per line, and a last line of kind \`end\`. A failure is \`application/problem+json\` with a \`code\` of the
[table of errors](errors.md). Each route lists its own codes; every route may also answer with
${everywhere.map((code) => `\`${code}\``).join(", ")}.

\`{session}\` is the key of a session, percent-encoded, or \`~\` and the key in base64url. A token of namespace \`*\` names the
namespace of a request in the header \`throughline-namespace\`.

Without a token: \`GET /healthz\` answers \`ok\`; \`GET /readyz\` answers \`ready\`, or 503 with \`draining\` or \`store-unreachable\`.
\`GET /metrics\` has the numbers of the node for Prometheus and needs the scope \`metrics\`.
`;

export function referencePage(document: JsonObject): string {
  const paths = document["paths"] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const sections = Object.entries(paths).flatMap(([path, operations]) =>
    Object.entries(operations).map(([method, operation]) => sectionOf(method.toUpperCase(), path, operation)),
  );
  return `${begin}\n${sections.join("\n")}`;
}

function sectionOf(method: string, path: string, operation: Operation): string {
  const { summary, description, parameters, requestBody, responses } = operation;
  const given = parameters.filter(({ in: place }) => place !== "path");
  const rows = given.map(({ name, in: place, description: text = "", required }) => {
    return `| \`${name}\` | ${place}${required ? ", required" : ""} | ${cell(text)} |`;
  });
  const body = requestBody === undefined ? [] : bodyLines(requestBody);
  const codes = Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, { description: text }]) => Array.from(text.matchAll(/`([A-Z_]+)`:/g), ([, code = ""]) => code))
    .filter((code) => !(everywhere as readonly string[]).includes(code));
  const answers = Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { description: text, content = {} }]) => `- ${status}: ${text}${shapeOf(content)}`);
  return [
    `## ${method} ${path}`,
    "",
    summary,
    "",
    description,
    "",
    ...(rows.length === 0 ? [] : ["| parameter | in | meaning |", "| --- | --- | --- |", ...rows, ""]),
    ...body,
    ...answers,
    ...(codes.length === 0 ? [] : [`- Problems: ${codes.map((code) => `\`${code}\``).join(", ")}.`]),
    "",
  ].join("\n");
}

function bodyLines({ content, required }: NonNullable<Operation["requestBody"]>): readonly string[] {
  const [media] = Object.values(content) as readonly { readonly schema: JsonObject }[];
  const { properties = {}, required: needed = [] } = (media?.schema ?? {}) as {
    readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
    readonly required?: readonly string[];
  };
  const names = Object.keys(content).map((type) => `\`${type}\``);
  const head = `Body, ${names.join(" or ")}${required ? "" : ", optional"}${shapeOf(content)}:`;
  const rows = Object.entries(properties).map(([name, { description = "" }]) => {
    return `| \`${name}\` | ${needed.includes(name) ? "required" : ""} | ${cell(description)} |`;
  });
  if (rows.length === 0) return [head.replace(/:$/, "."), ""];
  return [head, "", "| member | | meaning |", "| --- | --- | --- |", ...rows, ""];
}

function shapeOf(content: JsonObject): string {
  const [media] = Object.values(content) as readonly { readonly schema: { readonly $ref?: string } }[];
  const name = media?.schema.$ref?.split("/").at(-1);
  return name === undefined ? "" : ` (\`${name}\`)`;
}

function cell(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("\n", " ");
}
