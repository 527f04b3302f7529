package main

import "mime"

// contentTypes are those of files, by the endings of their names: those that pages have. Others are Go's or those of
// the machine's own list.
var contentTypes = map[string]string{
	".bin":   "application/octet-stream",
	".css":   "text/css; charset=utf-8",
	".gif":   "image/gif",
	".html":  "text/html; charset=utf-8",
	".ico":   "image/x-icon",
	".jpg":   "image/jpeg",
	".js":    "text/javascript; charset=utf-8",
	".json":  "application/json",
	".mp4":   "video/mp4",
	".png":   "image/png",
	".svg":   "image/svg+xml",
	".txt":   "text/plain; charset=utf-8",
	".webp":  "image/webp",
	".woff2": "font/woff2",
}

func init() {
	for ending, contentType := range contentTypes {
		if err := mime.AddExtensionType(ending, contentType); err != nil {
			panic(err) // the table above is wrong
		}
	}
}
