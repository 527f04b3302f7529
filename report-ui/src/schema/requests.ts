// Requests of a page: generated from schemas/requests.toml by `make schemas`.

/** The requests of a page in a trial. */
export type PageRequests = {
  /** The number of this file's format, as at the top of this page. */
  format: number;
  /** An entry for each resource, in the order of the page, its document first; of a live stream one for each segment that was requested, of type `media`. */
  requests: PageRequest[];
  /** Pictures of the page as it was loaded, where its browser reports them: the picture before it, and up to 23 others, the last one as it stayed. */
  film: FilmFrame[];
};

/** A picture of the page from a moment on. */
export type FilmFrame = {
  /** When it was drawn; less than 0 of what was there before the client's first packet. */
  at_s: number;
  /** The picture: JPEG, in base64. */
  jpeg: string;
};

/** The request of a resource. */
export type PageRequest = {
  /** Its path: a number, the size and the type, as in `/3-12000.css`. */
  path: string;
  /** Its type: a word of [pages](pages.md). */
  type: string;
  /** The size of its body, when all of it is there. */
  bytes: number;
  /** The path of the resource that led to it. Null the page begins with it. */
  initiator: string | null;
  /** 0 to 7, the lowest first (RFC 9218, section 4.1). */
  urgency: number;
  /** The application protocol that it came over, by its ALPN, where a browser says. Null not reported: that of the trial. */
  protocol: string | null;
  /** When a connection accepted the request. Null none did. */
  asked_s: number | null;
  /** When the response began, its head included. Null it never did. */
  first_byte_s: number | null;
  /** When the response ended, all of the body being there. Null not all of it came. */
  last_byte_s: number | null;
};
