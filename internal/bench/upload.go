package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/macfleet/macfleet/fleet"
	"github.com/macfleet/macfleet/fleet/inventory"
	"github.com/macfleet/macfleet/hosts"
	"github.com/macfleet/macfleet/plan"
)

const uploadBytes = 8 << 20

// upload compares macfleet's delivery of an artifact to real hosts with cat. There is no budget, since
// cat verifies nothing.
func (b *bench) upload(ctx context.Context) (_ []row, err error) {
	if os.Geteuid() != 0 {
		return []row{shown("upload", "needs root")}, nil
	}
	f, stop, err := startFleet(ctx, filepath.Join(b.dir, "upload"), b.uploads, "")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	f.Parallelism, f.Folder = hosts.DefaultUploads, filepath.Join(b.dir, "arrived")
	what := fmt.Sprintf("upload of %.0f MB to %d hosts: macfleet / bare program", megabytes(uploadBytes), b.uploads)
	ours, rows, err := b.compare(ctx, what, f, "deliver", "cat", 0)
	if err != nil {
		return nil, err
	}
	return append(rows, shown("  macfleet's throughput", "%.0f MB/s", megabytes(int64(b.uploads)*uploadBytes)/median(ours.walls))), nil
}

// sendAll sends the same random bytes to one file per host, by macfleet's delivery or by cat. It
// counts the complete files.
func sendAll(ctx context.Context, f *sshFleet, deliver bool) (r result, err error) {
	data := make([]byte, uploadBytes)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(data) // never fails
	sum := sha256.Sum256(data)
	artifact := fleet.Artifact{Name: "payload", Version: "1", SHA256: hex.EncodeToString(sum[:]), Fetch: fleet.FetchPush, Size: uploadBytes}
	folder := func(host string) string { return filepath.Join(f.Folder, host) }
	client, err := f.client(hosts.Options{ArtifactFolder: folder})
	if err != nil {
		return r, err
	}
	for i := range f.Hosts {
		if err := os.MkdirAll(folder(fmt.Sprint(i)), 0o755); err != nil {
			return r, err
		}
	}
	began := time.Now()
	err = f.each(ctx, func(ctx context.Context, i int) error {
		id := fmt.Sprint(i)
		if !deliver {
			_, err := f.run("cat > "+filepath.Join(folder(id), artifact.SHA256), bytes.NewReader(data))
			return err
		}
		conn, err := client.Connect(ctx, hosts.Target{Server: inventory.Server{ID: id, Name: "acme-" + id, Address: "198.18.0.1"}, Trust: plan.Trust{Pin: &plan.Pin{ServerID: id, Key: f.HostKey}}})
		if err != nil {
			return err
		}
		defer conn.Close()
		_, err = conn.Deliver(ctx, plan.Delivery{Artifact: artifact}, func() (io.ReadCloser, int64, error) {
			return io.NopCloser(bytes.NewReader(data)), uploadBytes, nil
		})
		return err
	})
	r.Wall = time.Since(began)
	for i := range f.Hosts {
		if info, err := os.Stat(filepath.Join(folder(fmt.Sprint(i)), artifact.SHA256)); err == nil && info.Size() == uploadBytes {
			r.Answers++
		}
	}
	return r, errors.Join(err, os.RemoveAll(f.Folder))
}
