package family

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPathsOfDownloads(t *testing.T) {
	env := &Environment{Hello: &Hello{Downloads: t.TempDir()}}
	folder, err := env.openDownloads()
	if err != nil {
		t.Fatal(err)
	}
	const up = ".."
	for path, want := range map[string]bool{
		"/file": true, "/in/" + up + "/file": true, "/in/file": true, "/..file": true,
		"": false, "/": false, "file": false, "/.": false, "/..": false, "/" + up + "/file": false, "//file": false, "/in/": false, "/a\x00b": false,
	} {
		if _, ok := folder.file(path); ok != want {
			t.Errorf("%q names a file: %v", path, ok)
		}
	}
}

func TestNothingIsStoredThroughALink(t *testing.T) {
	around := t.TempDir()
	inside := filepath.Join(around, "downloads")
	if err := os.Mkdir(inside, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(around, filepath.Join(inside, "link")); err != nil {
		t.Fatal(err)
	}
	env := &Environment{Hello: &Hello{Downloads: inside}}
	folder, err := env.openDownloads()
	if err != nil {
		t.Fatal(err)
	}
	file, ok := folder.file("/link/outside")
	if !ok {
		t.Fatal("the path is refused")
	}
	file.write([]byte("x"))
	file.end()
	if err := file.save(); err == nil {
		t.Error("stored through a link that leads out")
	}
	if _, err := os.Stat(filepath.Join(around, "outside")); err == nil {
		t.Error("there is a file outside of the folder")
	}
}
