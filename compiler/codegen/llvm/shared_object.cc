#include "compiler/codegen/llvm/shared_object.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "base/memory_file.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "compiler/codegen/llvm/object_file.h"
#include "compiler/codegen/llvm/parallel_runtime.h"
#include "compiler/codegen/llvm/target_info.h"
#include "lld/Common/CommonLinkerContext.h"
#include "lld/Common/Driver.h"
#include "llvm/Object/Archive.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/MemoryBufferRef.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/TargetParser/Triple.h"

LLD_HAS_DRIVER(elf)

// lld 19 leaves pointers to symbols of one link here and writes through them in
// the next when that has no such symbol: heap corruption in any process that
// links twice. Its own declaration is in a header that is not installed; later
// versions have no such globals, and this will not link with them.
namespace lld::elf {
class Defined;
struct ElfSym {
  static Defined* globalOffsetTable;
  static Defined* mipsGp;
  static Defined* mipsGpDisp;
  static Defined* mipsLocalGp;
  static Defined* relaIpltStart;
  static Defined* relaIpltEnd;
  static Defined* riscvGlobalPointer;
  static Defined* tlsModuleBase;
};
}  // namespace lld::elf

namespace regatta::cpu {
namespace {

void ForgetLastLink() {
  using lld::elf::ElfSym;
  for (lld::elf::Defined** symbol :
       {&ElfSym::globalOffsetTable, &ElfSym::mipsGp, &ElfSym::mipsGpDisp,
        &ElfSym::mipsLocalGp, &ElfSym::relaIpltStart, &ElfSym::relaIpltEnd,
        &ElfSym::riscvGlobalPointer, &ElfSym::tlsModuleBase}) {
    *symbol = nullptr;
  }
}

// What generated code may call of libc. Everything else undefined must be a
// function of libm.
const std::set<std::string>& LibcFunctions() {
  static const auto& names = *new std::set<std::string>{
      "aligned_alloc", "free",           "getpid",       "memcpy",   "memmove",
      "memset",        "pthread_create", "pthread_join", "sem_init", "sem_post",
      "sem_wait",      "abort",          "bzero",
  };
  return names;
}

const std::set<std::string>& LibmFunctions() {
  static const auto& names = *[] {
    auto* all = new std::set<std::string>;
    for (const char* name :
         {"exp",  "log",       "tanh",      "erf",   "floor",
          "rint", "nearbyint", "roundeven", "round", "trunc",
          "ceil", "sqrt",      "fma",       "fmin",  "fmax",
          "fabs", "copysign",  "ldexp",     "exp2",  "log2"}) {
      all->insert(name);
      all->insert(absl::StrCat(name, "f"));
    }
    return all;
  }();
  return names;
}

// The linker's input, which has a path for it.
absl::StatusOr<UniqueFd> LinkerInput(std::string_view content) {
  return SealedMemoryFile("regatta-link", content);
}

std::string PathOf(const UniqueFd& file) {
  return absl::StrCat("/proc/self/fd/", file.get());
}

// Where the linker writes. A pipe and not a file: lld writes a regular file
// under another name first and renames it, for which there is no directory.
class OutputPipe {
 public:
  OutputPipe() {
    if (pipe2(fds_, O_CLOEXEC) != 0) return;
    reader_ = std::thread([this] {
      char buffer[1 << 16];
      for (;;) {
        const ssize_t n = read(fds_[0], buffer, sizeof buffer);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return;
        content_.append(buffer, static_cast<size_t>(n));
      }
    });
  }
  OutputPipe(const OutputPipe&) = delete;
  ~OutputPipe() { Finish(); }

  bool ok() const { return fds_[0] >= 0; }
  std::string Path() const { return absl::StrCat("/proc/self/fd/", fds_[1]); }
  // What was written. No more may be.
  std::string Finish() {
    if (fds_[1] >= 0) close(std::exchange(fds_[1], -1));
    if (reader_.joinable()) reader_.join();
    if (fds_[0] >= 0) close(std::exchange(fds_[0], -1));
    return std::move(content_);
  }

 private:
  int fds_[2] = {-1, -1};
  std::string content_;
  std::thread reader_;
};

std::mutex& LinkerMutex() {
  static auto& mutex = *new std::mutex;
  return mutex;
}

// One run of lld; returns the output file.
// REQUIRES: LinkerMutex is held.
absl::StatusOr<std::string> RunLinker(std::vector<std::string> arguments) {
  OutputPipe output;
  if (!output.ok()) {
    return absl::InternalError(absl::StrCat("pipe: ", std::strerror(errno)));
  }
  arguments.insert(arguments.begin(), "ld.lld");
  for (const char* fixed :
       {"-shared", "--threads=1", "--build-id=none", "--hash-style=gnu",
        "--strip-all", "-z", "noexecstack", "-O0"}) {
    arguments.push_back(fixed);
  }
  arguments.push_back("-o");
  arguments.push_back(output.Path());
  std::vector<const char*> argv;
  for (const std::string& argument : arguments)
    argv.push_back(argument.c_str());
  std::string messages;
  llvm::raw_string_ostream stream(messages);
  const bool linked = lld::elf::link(argv, llvm::nulls(), stream,
                                     /*exitEarly=*/false,
                                     /*disableOutput=*/false);
  lld::CommonLinkerContext::destroy();
  ForgetLastLink();
  if (!linked) {
    return absl::InternalError(absl::StrCat("lld: ", stream.str()));
  }
  return output.Finish();
}

// A shared object without content whose only use is its name: linked against,
// it leaves a DT_NEEDED of `soname`. Kept for the process.
// REQUIRES: LinkerMutex is held.
absl::StatusOr<std::string> NamedStub(const Target& target,
                                      const std::string& soname) {
  static auto& stubs =
      *new std::map<std::pair<std::string, std::string>, std::string>;
  std::string& stub = stubs[{target.triple, soname}];
  if (!stub.empty()) return stub;
  ASSIGN_OR_RETURN(llvm::TargetMachine * machine, MachineFor(target));
  llvm::LLVMContext context;
  llvm::Module empty("stub", context);
  empty.setTargetTriple(LlvmTriple(target.triple));
  empty.setDataLayout(machine->createDataLayout());
  ASSIGN_OR_RETURN(
      const std::string object,
      EmitFile(empty, *machine, llvm::CodeGenFileType::ObjectFile));
  ASSIGN_OR_RETURN(const UniqueFd input, LinkerInput(object));
  ASSIGN_OR_RETURN(stub, RunLinker({PathOf(input), "-soname", soname}));
  return stub;
}

struct Needs {
  bool libc = false;
  bool libm = false;
};

absl::StatusOr<Needs> NeededLibraries(const std::vector<std::string>& objects) {
  Needs needs;
  for (const std::string& object : objects) {
    ASSIGN_OR_RETURN(const std::vector<std::string> undefined,
                     UndefinedSymbols(object));
    for (const std::string& name : undefined) {
      // Of the linker's own making.
      if (name == "_GLOBAL_OFFSET_TABLE_" || name == ".TOC.") continue;
      // The pool that several modules share: linked along with them.
      if (objects.size() > 1 && NeedsParallelRuntime({name})) continue;
      if (LibcFunctions().count(name)) {
        needs.libc = true;
      } else if (LibmFunctions().count(name)) {
        needs.libm = true;
      } else {
        return absl::InternalError(absl::StrCat(
            "generated code calls ", name, ", which is not in libc or libm"));
      }
    }
  }
  return needs;
}

// All of them in one file: a file descriptor for each could be more than a
// process may have.
absl::StatusOr<std::string> Archive(const std::vector<std::string>& objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (const std::string& object : objects) {
    members.emplace_back(llvm::MemoryBufferRef(object, "part.o"));
  }
  auto archive = llvm::writeArchiveToBuffer(
      members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
      /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) {
    return absl::InternalError(
        absl::StrCat("archive: ", llvm::toString(archive.takeError())));
  }
  return (*archive)->getBuffer().str();
}

}  // namespace

absl::StatusOr<std::string> LinkSharedObject(
    const std::vector<std::string>& objects, const Target& target) {
  ASSIGN_OR_RETURN(const Needs needs, NeededLibraries(objects));
  const llvm::Triple parsed(LlvmTriple(target.triple));
  const bool gnu = parsed.isOSLinux() && parsed.isGNUEnvironment();
  std::lock_guard<std::mutex> lock(LinkerMutex());
  std::vector<UniqueFd> files;
  std::vector<std::string> arguments;
  if (objects.size() == 1) {
    ASSIGN_OR_RETURN(UniqueFd input, LinkerInput(objects[0]));
    arguments = {PathOf(input)};
    files.push_back(std::move(input));
  } else {
    ASSIGN_OR_RETURN(const std::string archive, Archive(objects));
    ASSIGN_OR_RETURN(UniqueFd input, LinkerInput(archive));
    arguments = {"--whole-archive", PathOf(input), "--no-whole-archive"};
    files.push_back(std::move(input));
  }
  arguments.push_back("--no-as-needed");
  for (const auto& [needed, soname] : {std::pair(needs.libc, "libc.so.6"),
                                       std::pair(needs.libm, "libm.so.6")}) {
    if (!gnu || !needed) continue;
    ASSIGN_OR_RETURN(const std::string stub, NamedStub(target, soname));
    ASSIGN_OR_RETURN(UniqueFd file, LinkerInput(stub));
    arguments.push_back(PathOf(file));
    files.push_back(std::move(file));
  }
  return RunLinker(std::move(arguments));
}

}  // namespace regatta::cpu
