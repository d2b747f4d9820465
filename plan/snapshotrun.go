package plan

import "time"

type lockFile struct {
	Run     text      `json:"run"`
	Who     text      `json:"who"`
	Epoch   int64     `json:"epoch"`
	Since   time.Time `json:"since"`
	Renewed time.Time `json:"renewed"`
	Alive   bool      `json:"alive"`
	Unread  text      `json:"unread,omitempty"`
}

type enteredFile struct {
	Run   text      `json:"run"`
	Who   text      `json:"who"`
	Epoch int64     `json:"epoch"`
	At    time.Time `json:"at"`
	Alone bool      `json:"alone"`
	Held  bool      `json:"held"`
	Idle  int64     `json:"idle_seconds"`
}

func lockToFile(l *Lock) *lockFile {
	if l == nil {
		return nil
	}
	return &lockFile{Run: text(l.Run.ID), Who: text(l.Run.Who), Epoch: l.Run.Epoch, Since: l.Since, Renewed: l.Renewed, Alive: l.Alive, Unread: text(l.Unread)}
}

func (f *lockFile) lock() *Lock {
	if f == nil {
		return nil
	}
	return &Lock{Run: Run{ID: string(f.Run), Who: string(f.Who), Epoch: f.Epoch}, Since: f.Since, Renewed: f.Renewed, Alive: f.Alive, Unread: string(f.Unread)}
}

func enteredToFile(e *Entered) *enteredFile {
	if e == nil {
		return nil
	}
	return &enteredFile{Run: text(e.ID), Who: text(e.Who), Epoch: e.Epoch, At: e.At, Alone: e.Alone, Held: e.Held, Idle: int64(e.Idle / time.Second)}
}

func (f *enteredFile) entered() *Entered {
	if f == nil {
		return nil
	}
	return &Entered{ID: string(f.Run), Who: string(f.Who), Epoch: f.Epoch, At: f.At, Alone: f.Alone, Held: f.Held,
		Idle: time.Duration(min(max(f.Idle, 0), 1<<31)) * time.Second}
}
