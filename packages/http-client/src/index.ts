export { createHttpClient } from "./http-client.ts";
export type { HttpClient, HttpClientOptions, HttpRequest } from "./http-client.ts";
export { HttpProblem, type ProblemDocument } from "./http-problem.ts";
export { readEvents, type ServerEvent } from "./read-events.ts";
export { sessionPath } from "./session-path.ts";
