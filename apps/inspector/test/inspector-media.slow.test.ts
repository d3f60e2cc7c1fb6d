import { crc32, deflateSync } from "node:zlib";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { chromiumPath, launch, openPage, prompt, reply, skipReason, writeSession, sessionPath } from "./browser.ts";

const key = "agent:main:media";
const address = sessionPath(key);

/** Makes a PNG whose data is not compressed, so that it is as large as a screenshot. */
function picture(width: number, height: number): string {
  const chunk = (type: string, data: Buffer): Buffer => {
    const body = Buffer.concat([Buffer.from(type, "latin1"), data]);
    const [length, sum] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    sum.writeUInt32BE(crc32(body));
    return Buffer.concat([length, body, sum]);
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, 2, 0, 0, 0], 8);
  const row = Buffer.concat([Buffer.from([0]), Buffer.alloc(width * 3, 90)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => row)), { level: 0 });
  const sign = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
  const parts = [chunk("IHDR", head), chunk("IDAT", pixels), chunk("IEND", Buffer.alloc(0))];
  return Buffer.concat([sign, ...parts]).toString("base64");
}

const screenshot = picture(400, 300);
const drawing = Buffer.from(
  "<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'><script>alert(1)</script></svg>",
);
const large = `${screenshot.slice(0, 64)}${"A".repeat(14 * 1024 * 1024)}`;

describe.skipIf(chromiumPath === undefined)(`images and exports${skipReason}`, () => {
  let browser: Browser;

  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  it("shows an image on a click, from the record alone, and nothing that is no image", async () => {
    const image = (data: string): object => ({ type: "image", mimeType: "image/png", data });
    const opened = await openPage(browser, (store) =>
      writeSession(store, key, { title: "Pictures" }, [
        prompt("Take a screenshot"),
        reply([{ type: "toolCall", id: "t1", name: "screenshot", arguments: { page: "login" } }]),
        {
          type: "message",
          message: {
            role: "toolResult",
            toolCallId: "t1",
            toolName: "screenshot",
            isError: false,
            content: [{ type: "text", text: "Taken" }, image(screenshot), image(drawing.toString("base64"))],
          },
        },
        { type: "message", message: { role: "user", content: [{ type: "text", text: "And this" }, image(large)] } },
      ]),
    );
    const { page } = opened;
    await opened.go(address);
    await page.getByText("The page shows images up to 10 MB.").waitFor();
    await page.locator(".row.tool .row-line").click();
    const row = page.locator(".row.tool");
    expect(await row.innerText()).toContain("Image · image/png · 360.4 kB");
    expect(await page.locator("img").count()).toBe(0);
    const asked: string[] = [];
    page.on("request", (request) => asked.push(new URL(request.url()).pathname));
    await row.getByRole("button", { name: "Show the image, 360.4 kB" }).click();
    const shown = row.locator("img");
    await shown.waitFor();
    expect(await shown.evaluate((img: HTMLImageElement) => img.decode().then(() => img.naturalWidth))).toBe(400);
    expect(await shown.getAttribute("src")).toMatch(/^blob:/);
    // The image comes in steps of 256 KiB.
    expect(asked.filter((path) => path.includes("/records/"))).toHaveLength(2);
    await row.getByRole("button", { name: "Show the image, 90 B" }).click();
    await row.getByText("This is no PNG, JPEG, GIF or WebP.").waitFor();
    expect(await page.locator("img").count()).toBe(1);
    expect(await page.locator("main").innerText()).not.toContain(screenshot.slice(0, 40));
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });

  it("replaces what an expression of the reader finds, and names one that is refused", async () => {
    const opened = await openPage(browser, (store) =>
      writeSession(store, key, { title: "Secrets" }, [prompt("The customer is ACME-123456 and ACME-654321")]),
    );
    const { page } = opened;
    await opened.go(address);
    await page.getByRole("button", { name: "Export" }).click();
    const field = page.getByLabel("Replace also, one regular expression a line");
    await field.fill("ACME-[0-9]{6}");
    await field.blur();
    await page.locator(".export .losses", { hasText: "2" }).waitFor();
    const saved = page.waitForEvent("download");
    await page.getByRole("button", { name: "Save the file" }).click();
    const stream = await (await saved).createReadStream();
    let text = "";
    for await (const part of stream) text += String(part);
    expect(text).toContain("The customer is");
    expect(text).not.toMatch(/ACME-\d/);
    await field.fill("(a+)+$");
    await field.blur();
    await page.locator(".export .error-text").waitFor();
    expect(opened.reports).toEqual({ errors: [], foreignRequests: [], dialogs: [], violations: [] });
    await opened.close();
  });
});
