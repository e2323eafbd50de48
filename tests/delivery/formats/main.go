// Command formats says of each program named on its command line what it is and what it loads, one JSON object a line.
package main

import (
	"debug/elf"
	"debug/macho"
	"debug/pe"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

type program struct {
	Format  string   `json:"format"`
	Machine string   `json:"machine"`
	Loads   []string `json:"loads"`
	Detail  string   `json:"detail"`
}

func main() {
	for _, path := range os.Args[1:] {
		found, err := read(path)
		if err == nil {
			err = json.NewEncoder(os.Stdout).Encode(found)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "error:", path+":", err)
			os.Exit(1)
		}
	}
}

func read(path string) (program, error) {
	if file, err := elf.Open(path); err == nil {
		loads, err := file.ImportedLibraries()
		for _, segment := range file.Progs {
			if segment.Type == elf.PT_INTERP {
				loads = append(loads, "an interpreter")
			}
		}
		return program{"elf", file.Machine.String(), loads, file.OSABI.String()}, err
	}
	if file, err := macho.Open(path); err == nil {
		loads, err := file.ImportedLibraries()
		return program{"macho", file.Cpu.String(), loads, machoDetail(file)}, err
	}
	file, err := pe.Open(path)
	if err != nil {
		return program{}, err
	}
	// Symbols are "name:library"; the list of libraries of this package is empty for PE.
	symbols, err := file.ImportedSymbols()
	seen := map[string]bool{}
	var loads []string
	for _, symbol := range symbols {
		_, library, _ := strings.Cut(symbol, ":")
		if library = strings.ToLower(library); !seen[library] {
			seen[library] = true
			loads = append(loads, library)
		}
	}
	machine := map[uint16]string{pe.IMAGE_FILE_MACHINE_AMD64: "amd64", pe.IMAGE_FILE_MACHINE_ARM64: "arm64"}[file.Machine]
	header, _ := file.OptionalHeader.(*pe.OptionalHeader64)
	return program{"pe", machine, loads, fmt.Sprintf("subsystem %d", header.Subsystem)}, err
}

// machoDetail names the oldest macOS on which the program starts, and whether it carries a code signature: without one it
// does not start on arm64 at all.
func machoDetail(file *macho.File) string {
	var detail []string
	for _, load := range file.Loads {
		raw := load.Raw()
		switch file.ByteOrder.Uint32(raw) {
		case 0x1d: // LC_CODE_SIGNATURE
			detail = append(detail, "signed")
		case 0x32: // LC_BUILD_VERSION: platform, then the oldest version as 16.8.8 bits
			version := file.ByteOrder.Uint32(raw[12:])
			detail = append(detail, fmt.Sprintf("from %d.%d", version>>16, version>>8&0xff))
		case 0x24: // LC_VERSION_MIN_MACOSX
			version := file.ByteOrder.Uint32(raw[8:])
			detail = append(detail, fmt.Sprintf("from %d.%d", version>>16, version>>8&0xff))
		}
	}
	return strings.Join(detail, ", ")
}
