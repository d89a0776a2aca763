/**
 * A part as it is packed: raw deflate of JSON in one line, or of such a line and arrays of numbers.
 */

export async function inflate(packed: Uint8Array): Promise<Uint8Array> {
  const stream = new DecompressionStream("deflate-raw");
  // Written straight into it: the stream of a Blob takes three times as long. What is wrong with
  // the data, reading says.
  const writer = stream.writable.getWriter();
  for (const step of [writer.write(packed as Uint8Array<ArrayBuffer>), writer.close()])
    step.catch(() => undefined);
  return new Uint8Array(await new Response(stream.readable).arrayBuffer());
}

export function fromBase64(text: string): Uint8Array {
  const fast = (Uint8Array as unknown as { fromBase64?: (text: string) => Uint8Array }).fromBase64;
  if (fast) return fast.call(Uint8Array, text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function json<T>(bytes: Uint8Array): T {
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

export type Numbers = Float64Array | Int32Array;

/** The JSON of a part with arrays, and the arrays. */
export function withArrays<T>(bytes: Uint8Array): { head: T; arrays: Numbers[] } {
  const end = bytes.indexOf(10);
  const head = json<T & { arrays: [string, number][] }>(bytes.subarray(0, end));
  let at = bytes.byteOffset + end + 1;
  const arrays = head.arrays.map(([type, length]) => {
    const numbers =
      type === "f8"
        ? new Float64Array(bytes.buffer, at, length)
        : new Int32Array(bytes.buffer, at, length);
    at += Math.ceil(numbers.byteLength / 8) * 8;
    return numbers;
  });
  return { head, arrays };
}
