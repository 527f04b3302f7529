package main

import (
	"io/fs"
	"os"

	"github.com/caddyserver/caddy/v2"
)

// folder is a file system of Caddy's: a folder that neither paths nor symbolic links lead out of.
type folder struct {
	Path string `json:"path"`

	root *os.Root
}

func init() { caddy.RegisterModule(new(folder)) }

// CaddyModule says by what name Caddy's configuration knows it.
func (*folder) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "caddy.fs.bentpipe", New: func() caddy.Module { return new(folder) }}
}

// Provision opens it, when Caddy has read its configuration.
func (f *folder) Provision(caddy.Context) error {
	root, err := os.OpenRoot(f.Path)
	f.root = root
	return err
}

// Cleanup closes it, when Caddy ends.
func (f *folder) Cleanup() error { return f.root.Close() }

// Open opens a file, by its path in the folder.
func (f *folder) Open(name string) (fs.File, error) { return f.root.FS().Open(name) }

// Stat describes the file at a path in the folder.
func (f *folder) Stat(name string) (fs.FileInfo, error) { return f.root.Stat(name) }
