import { openApiDocument, type JsonObject } from "./http/openapi-document.ts";
import type { RouteDefinition } from "./http/route.ts";
import { adminRoutes } from "./routes/admin-routes.ts";
import { approvalRoutes } from "./routes/approval-routes.ts";
import { attachRoutes } from "./routes/attach-routes.ts";
import { callRoutes } from "./routes/call-routes.ts";
import { contextRoutes } from "./routes/context-routes.ts";
import { digestRoutes } from "./routes/digest-routes.ts";
import { documentRoutes } from "./routes/document-routes.ts";
import { eventRoutes } from "./routes/event-routes.ts";
import { fileRoutes } from "./routes/file-routes.ts";
import { lifeCycleRoutes } from "./routes/life-cycle-routes.ts";
import { messageRoutes } from "./routes/message-routes.ts";
import { outlineRoutes } from "./routes/outline-routes.ts";
import { partialRoutes } from "./routes/partial-routes.ts";
import { readingRoutes } from "./routes/reading-routes.ts";
import { recordRoutes } from "./routes/record-routes.ts";
import { resumeRoutes } from "./routes/resume-routes.ts";
import { rewindRoutes } from "./routes/rewind-routes.ts";
import { searchRoutes } from "./routes/search-routes.ts";
import { sessionRoutes } from "./routes/session-routes.ts";
import { storeRoutes } from "./routes/store-routes.ts";
import { summaryRoutes } from "./routes/summary-routes.ts";
import { transferRoutes } from "./routes/transfer-routes.ts";
import { turnRoutes } from "./routes/turn-routes.ts";
import { usageRoutes } from "./routes/usage-routes.ts";
import { vectorRoutes } from "./routes/vector-routes.ts";
import { version } from "./version.ts";

export const apiRoutes: readonly RouteDefinition[] = [
  ...storeRoutes,
  ...sessionRoutes,
  ...recordRoutes,
  ...messageRoutes,
  ...turnRoutes,
  ...approvalRoutes,
  ...contextRoutes,
  ...callRoutes,
  ...summaryRoutes,
  ...readingRoutes,
  ...outlineRoutes,
  ...digestRoutes,
  ...resumeRoutes,
  ...transferRoutes,
  ...lifeCycleRoutes,
  ...rewindRoutes,
  ...partialRoutes,
  ...fileRoutes,
  ...searchRoutes,
  ...vectorRoutes,
  ...usageRoutes,
  ...eventRoutes,
  ...attachRoutes,
  ...adminRoutes,
  ...documentRoutes,
];

export function apiDocument(): JsonObject {
  return openApiDocument(apiRoutes, version);
}
