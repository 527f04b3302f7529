package family

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// mapFolder maps every file of a folder into memory, by its path with a leading slash: a path that is not in it, or
// that leads out of it, is none of its files, and to send one takes no system call. Symbolic links below the folder
// are not followed.
func mapFolder(folder string) (map[string][]byte, error) {
	folder, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	err = filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		files[filepath.ToSlash(name[len(folder):])], err = mapFile(name)
		return err
	})
	return files, err
}

func mapFile(name string) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return nil, err
	}
	return syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
}

// downloads is a folder that files are stored in. Symbolic links do not lead out of it.
type downloads struct {
	root  *os.Root
	eager bool // files are written as their bytes come, not when save is called
}

func (env *Environment) openDownloads() (*downloads, error) {
	if err := os.MkdirAll(env.Hello.Downloads, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(env.Hello.Downloads)
	return &downloads{root, env.eager}, err
}

// file is a new file of the folder; false if the path, which begins with a slash, cannot name one.
func (d *downloads) file(path string) (*stored, bool) {
	name, absolute := strings.CutPrefix(path, "/")
	if !absolute || !filepath.IsLocal(name) || name == "." || strings.HasSuffix(name, "/") || strings.Contains(name, "\x00") {
		return nil, false
	}
	return &stored{folder: d, name: filepath.FromSlash(name)}, true
}

// stored is a file that is being received.
type stored struct {
	folder   *downloads
	name     string
	held     []byte // has arrived and is not in the file yet
	complete bool   // has been received to its end
	closed   bool   // is in the file to its end
	file     *os.File
}

func (s *stored) write(b []byte) error {
	s.held = append(s.held, b...)
	return s.saveIf(s.folder.eager)
}

func (s *stored) end() error {
	s.complete = true
	return s.saveIf(s.folder.eager)
}

func (s *stored) saveIf(now bool) error {
	if !now {
		return nil
	}
	return s.save()
}

// save moves what is held to the file. What ends before its first byte, and is not complete, leaves no file.
func (s *stored) save() error {
	if s.closed || len(s.held) == 0 && !s.complete {
		return nil
	}
	if s.file == nil {
		if err := s.folder.root.MkdirAll(filepath.Dir(s.name), 0o755); err != nil {
			return err
		}
		var err error
		if s.file, err = s.folder.root.Create(s.name); err != nil {
			return err
		}
	}
	_, err := s.file.Write(s.held)
	s.held = s.held[:0]
	if s.complete {
		s.closed = true
		err = errors.Join(err, s.file.Close())
	}
	return err
}
