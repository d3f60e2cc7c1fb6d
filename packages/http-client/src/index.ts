export { createHttpClient } from "./http-client.ts";
export type { HttpClient, HttpClientOptions, HttpRequest } from "./http-client.ts";
export { HttpProblem } from "./http-problem.ts";
export type { ProblemDocument } from "./http-problem.ts";
export { readEvents } from "./read-events.ts";
export type { ServerEvent } from "./read-events.ts";
export { sessionPath } from "./session-path.ts";
