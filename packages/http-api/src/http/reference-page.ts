import { everywhere, type JsonObject } from "./openapi-document.ts";

interface Operation {
  readonly operationId: string;
  readonly summary: string;
  readonly description: string;
  readonly parameters: readonly Parameter[];
  readonly requestBody?: { readonly required: boolean; readonly content: JsonObject };
  readonly responses: Readonly<Record<string, { readonly description: string; readonly content?: JsonObject }>>;
}

interface Parameter {
  readonly name: string;
  readonly in: string;
  readonly required: boolean;
  readonly description?: string;
}

const begin = `# HTTP API

\`throughline serve\` answers below \`/api/v1\`. Append a record, and read it:

\`\`\`sh no-run reason="the guide to the server runs these steps"
throughline serve --port 0 > address.txt 2> server.log &
until [ -s address.txt ]; do sleep 0.2; done
API="$(cat address.txt)/api/v1"
AUTH="authorization: Bearer $(throughline token create curl --quiet)"
JSON="content-type: application/json"
curl -sf -X PUT "$API/sessions/home" -H "$AUTH" -H "$JSON" -d '{}' > /dev/null
curl -sf "$API/sessions/home/records" -H "$AUTH" -H "$JSON" -H "idempotency-key: first" > /dev/null -d '{
  "drafts": [{"type": "message", "message": {"role": "user", "content": "Hello"}}]}'
curl -sf "$API/sessions/home/records" -H "$AUTH"
kill "$(sed 's/.*"pid":\\([0-9]*\\).*/\\1/' "\${THROUGHLINE_HOME:-$HOME/.throughline}/server.json")"
\`\`\`

[Run the server](guides/run-the-server.md) takes turns. Bodies are JSON, times are UTC milliseconds. A list is
\`{"kind":"list","items":[…],"count":N,"nextCursor":null}\`; with \`accept: application/x-ndjson\` it is one object per line, and a last
line of kind \`end\`. A failure is \`application/problem+json\` with a \`code\` of the [table of errors](errors.md).

\`{session}\` is the key of a session, percent-encoded, or \`~\` and the key in base64url. A token of namespace \`*\` names the
namespace of a request in the header \`throughline-namespace\`.

Without a token: \`GET /healthz\` answers \`ok\`; \`GET /readyz\` answers \`ready\`, or 503 with \`draining\` or \`store-unreachable\`.
\`GET /metrics\` has the numbers of the node for Prometheus and needs the scope \`metrics\`.

Written by \`node --conditions=@throughline/source tools/check-openapi.ts --write\` from the schemas that check the requests.
[openapi.json](openapi.json) is the same as OpenAPI 3.1.
`;

/** The parameters of at least this number of routes are described once. */
const leastRoutes = 6;
/** Every route with a body may answer with it. */
const bodyProblem = "MEDIA_TYPE_UNSUPPORTED";

export function referencePage(document: JsonObject): string {
  const paths = document["paths"] as Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ heading: `${method.toUpperCase()} ${path}`, operation })),
  );
  const common = commonLines(operations.flatMap(({ operation }) => operation.parameters));
  const sections = operations.map(({ heading, operation }) => sectionOf(heading, operation, common));
  return `${begin}\n${commonSection(common)}\n${sections.join("\n")}`;
}

/** The lines that occur often, in the order in which they first occur. */
function commonLines(parameters: readonly Parameter[]): ReadonlySet<string> {
  const counts = Map.groupBy(
    parameters.filter(({ in: place }) => place !== "path"),
    parameterLine,
  );
  return new Set([...counts].flatMap(([line, uses]) => (uses.length >= leastRoutes ? [line] : [])));
}

function commonSection(common: ReadonlySet<string>): string {
  const codes = everywhere.map((code) => `\`${code}\``).join(", ");
  return [
    "## What many routes share",
    "",
    "A route names these parameters, and adds those of its own:",
    "",
    ...common,
    "",
    `Every route may answer with ${codes}, and one with a body with \`${bodyProblem}\`. The problems of a route come on top.`,
    "",
  ].join("\n");
}

function sectionOf(heading: string, operation: Operation, common: ReadonlySet<string>): string {
  const { summary, description, parameters, requestBody, responses } = operation;
  const given = parameters.filter(({ in: place }) => place !== "path");
  const shared = given.filter((parameter) => common.has(parameterLine(parameter))).map(({ name }) => `\`${name}\``);
  const own = given.map(parameterLine).filter((line) => !common.has(line));
  const body = requestBody === undefined ? [] : bodyLines(requestBody);
  const known: readonly string[] = requestBody === undefined ? everywhere : [...everywhere, bodyProblem];
  const codes = Object.entries(responses)
    .filter(([status]) => Number(status) >= 400)
    .flatMap(([, { description: text }]) => Array.from(text.matchAll(/`([A-Z_]+)`:/g), ([, code = ""]) => code))
    .filter((code) => !known.includes(code));
  const answers = Object.entries(responses)
    .filter(([status]) => Number(status) < 400)
    .map(([status, { description: text, content = {} }]) => answerOf(status, text, shapeOf(content)));
  return [
    `## ${heading}`,
    "",
    summary,
    "",
    description,
    "",
    ...(given.length === 0 ? [] : [parametersLine(shared, own.length), ""]),
    ...(own.length === 0 ? [] : [...own, ""]),
    ...body,
    `Answers: ${answers.join("; ")}.`,
    ...(codes.length === 0 ? [] : ["", `Problems: ${codes.map((code) => `\`${code}\``).join(", ")}.`]),
    "",
  ].join("\n");
}

/** The name of a shape needs no sentence beside it that repeats it. */
function answerOf(status: string, text: string, shape: string): string {
  const words = text.replace(/\.$/, "");
  return shape !== "" && !words.includes(".") ? `${status}${shape}` : `${status}: ${words}${shape}`;
}

function parametersLine(shared: readonly string[], ownCount: number): string {
  const names = shared.length === 0 ? "" : ` ${shared.join(", ")}`;
  if (ownCount === 0) return `Parameters${names}.`;
  return `Parameters${names === "" ? "" : `${names} and`}:`;
}

function parameterLine({ name, in: place, required, description = "" }: Parameter): string {
  return line(name, [place === "query" ? "" : place, required ? "required" : ""], description);
}

/** A name, what holds of it, and its meaning. */
function line(name: string, notes: readonly string[], text: string): string {
  const noted = notes.filter((note) => note !== "").join(", ");
  return `- \`${name}\`${noted === "" ? "" : ` (${noted})`}${text === "" ? "" : `: ${text.replaceAll("\n", " ")}`}`;
}

function bodyLines({ content, required }: NonNullable<Operation["requestBody"]>): readonly string[] {
  const [media] = Object.values(content) as readonly { readonly schema: JsonObject }[];
  const { properties = {}, required: needed = [] } = (media?.schema ?? {}) as {
    readonly properties?: Readonly<Record<string, { readonly description?: string }>>;
    readonly required?: readonly string[];
  };
  const names = Object.keys(content).map((type) => `\`${type}\``);
  const head = `Body, ${names.join(" or ")}${required ? "" : ", optional"}${shapeOf(content)}:`;
  const rows = Object.entries(properties).map(([name, { description = "" }]) =>
    line(name, [needed.includes(name) ? "required" : ""], description),
  );
  if (rows.length === 0) return [head.replace(/:$/, "."), ""];
  return [head, "", ...rows, ""];
}

function shapeOf(content: JsonObject): string {
  const [media] = Object.values(content) as readonly { readonly schema: { readonly $ref?: string } }[];
  const name = media?.schema.$ref?.split("/").at(-1);
  return name === undefined ? "" : ` (\`${name}\`)`;
}
