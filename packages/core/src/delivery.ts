import { patchEntry, type DeliveryContext, type SessionEntry } from "./session-entry.ts";

/**
 * Makes `deliveryContext` and the `last*` fields agree. The context wins when both state a value. A value that only one
 * of them states is copied to the other.
 */
export function normalizeDelivery(entry: SessionEntry): SessionEntry {
  const context = entry.deliveryContext;
  const channel = text(context?.channel) ?? text(entry.lastChannel) ?? text(entry.channel);
  const to = text(context?.to) ?? text(entry.lastTo);
  const accountId = text(context?.accountId) ?? text(entry.lastAccountId);
  const threadId = thread(context?.threadId) ?? thread(entry.lastThreadId);
  if (channel === undefined && to === undefined && accountId === undefined && threadId === undefined) return entry;
  return patchEntry(entry, {
    deliveryContext: { channel, to, accountId, threadId },
    lastChannel: channel,
    lastTo: to,
    lastAccountId: accountId,
    lastThreadId: threadId,
  });
}

/**
 * Returns the entry after a message arrived or left by this route. A new route without a thread removes the old thread,
 * which belongs to the old route.
 */
export function applyRoute(entry: SessionEntry, route: DeliveryContext): SessionEntry {
  const context: DeliveryContext = { ...definedRoute(entry.deliveryContext ?? {}), ...definedRoute(route) };
  const isNewRoute = route.channel !== undefined || route.to !== undefined;
  const deliveryContext = isNewRoute && route.threadId === undefined ? withoutThread(context) : context;
  return normalizeDelivery(
    patchEntry(entry, {
      deliveryContext,
      lastThreadId: deliveryContext.threadId,
      lastChannel: undefined,
      lastTo: undefined,
      lastAccountId: undefined,
    }),
  );
}

function withoutThread(context: DeliveryContext): DeliveryContext {
  const { threadId: _dropped, ...rest } = context;
  return rest;
}

function definedRoute(route: DeliveryContext): DeliveryContext {
  return Object.fromEntries(Object.entries(route).filter(([, value]) => value !== undefined && value !== ""));
}

function text(value: unknown): string | undefined {
  return typeof value === "string" && value.trim() !== "" ? value.trim() : undefined;
}

function thread(value: unknown): string | number | undefined {
  return typeof value === "number" ? value : text(value);
}
