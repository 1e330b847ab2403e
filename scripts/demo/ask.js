/** How workers and the play talk to the store. */

/**
 * GET without a body, POST with one.
 * @param {string} store its URL
 * @param {string} path
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function askStore(store, path, body) {
  const post = body === undefined ? {} : { method: 'POST', body: JSON.stringify(body) };
  return (await fetch(`${store}${path}`, post)).json();
}
