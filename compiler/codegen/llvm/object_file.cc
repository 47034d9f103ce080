#include "compiler/codegen/llvm/object_file.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Object/ObjectFile.h"
#include "llvm/Support/MemoryBuffer.h"

namespace regatta::cpu {
namespace {

// Without this, LLVM ends the process after the first error.
class DiagnosticCollector {
 public:
  explicit DiagnosticCollector(llvm::LLVMContext& context) : context_(context) {
    context_.setDiagnosticHandlerCallBack(&Handle, this);
  }
  ~DiagnosticCollector() {
    context_.setDiagnosticHandlerCallBack(nullptr, nullptr);
  }
  const std::string& errors() const { return errors_; }

 private:
  static void Handle(const llvm::DiagnosticInfo* info, void* self) {
    if (info->getSeverity() != llvm::DS_Error) return;
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info->print(printer);
    absl::StrAppend(&static_cast<DiagnosticCollector*>(self)->errors_,
                    stream.str(), "; ");
  }

  llvm::LLVMContext& context_;
  std::string errors_;
};

}  // namespace

absl::StatusOr<std::string> EmitFile(llvm::Module& module,
                                     llvm::TargetMachine& machine,
                                     llvm::CodeGenFileType type) {
  std::string problem;
  llvm::raw_string_ostream problem_stream(problem);
  if (llvm::verifyModule(module, &problem_stream)) {
    return absl::InternalError(
        absl::StrCat("LLVM IR is malformed: ", problem_stream.str()));
  }
  DiagnosticCollector diagnostics(module.getContext());
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type,
                                  /*DisableVerify=*/true)) {
    return absl::InternalError(absl::StrCat("LLVM emits no such file for ",
                                            machine.getTargetTriple().str()));
  }
  passes.run(module);
  if (!diagnostics.errors().empty()) {
    return absl::InternalError(
        absl::StrCat("LLVM code generation: ", diagnostics.errors()));
  }
  return std::string(bytes.str());
}

absl::StatusOr<std::vector<std::string>> UndefinedSymbols(
    std::string_view object) {
  llvm::MemoryBufferRef buffer(llvm::StringRef(object.data(), object.size()),
                               "object");
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> file =
      llvm::object::ObjectFile::createObjectFile(buffer);
  if (!file) {
    return absl::InternalError(
        absl::StrCat("object file: ", llvm::toString(file.takeError())));
  }
  std::vector<std::string> names;
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    llvm::Expected<uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      return absl::InternalError("object file: unreadable symbol");
    }
    if ((*flags & llvm::object::SymbolRef::SF_Undefined) && !name->empty()) {
      names.push_back(name->str());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace regatta::cpu
