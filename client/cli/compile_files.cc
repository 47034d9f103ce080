#include "client/cli/compile_files.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/status_macros.h"
#include "base/strings.h"
#include "client/cli/file_output.h"

namespace regatta::cli {
namespace {

struct OutputFile {
  std::string path;
  std::string bytes;
  bool executable = false;
};

absl::StatusOr<std::vector<std::string>> WriteAllOrNone(
    const std::vector<OutputFile>& files) {
  std::vector<StagedFile> staged;
  std::vector<std::string> paths;
  for (const OutputFile& file : files) {
    ASSIGN_OR_RETURN(StagedFile one,
                     StagedFile::Write(
                         file.path, file.bytes,
                         file.executable ? FileUse::kProgram : FileUse::kData));
    staged.push_back(std::move(one));
    paths.push_back(file.path);
  }
  for (StagedFile& file : staged) RETURN_IF_ERROR(file.Commit());
  return paths;
}

// What stands in an #include and before every extension.
bool IsLauncherName(const std::string& file) {
  return !file.empty() && std::all_of(file.begin(), file.end(), [](char c) {
    return absl::ascii_isalnum(c) || c == '_' || c == '-';
  });
}

std::string KindsOfDevices() {
  return absl::StrJoin(Launchers(), ", ",
                       [](std::string* out, const Launcher& launcher) {
                         absl::StrAppend(out, ToAbsl(launcher.kind));
                       });
}

std::string ExtensionsOf(const Launcher& launcher) {
  return absl::StrJoin(launcher.extensions, ", ");
}

}  // namespace

absl::StatusOr<CompileFiles> CompileFiles::Named(const std::string& output,
                                                 const std::string& header) {
  CompileFiles files;
  files.output_ = output;
  const std::filesystem::path path(output);
  if (absl::EndsWith(output, ".so")) {
    files.form_ = Form::kShared;
  } else if (absl::EndsWith(output, ".o")) {
    files.form_ = Form::kObject;
  } else if (IsLauncherName(path.filename().string())) {
    files.form_ = Form::kLauncher;
  } else {
    return absl::InvalidArgumentError(absl::StrCat(
        "-o ", output,
        ": the name must end in .so (shared library) or .o (object file), or "
        "for devices (",
        KindsOfDevices(),
        ") have no extension: letters, digits, '_' and '-' only"));
  }
  if (files.is_launcher() && !header.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--header ", header, ": the header of a launcher is ",
                     output, ".h, beside the launcher that includes it"));
  }
  files.header_ =
      files.is_launcher() ? absl::StrCat(output, ".h")
      : !header.empty()
          ? header
          : std::filesystem::path(path).replace_extension(".h").string();
  if (files.header_ == output) {
    return absl::InvalidArgumentError(
        absl::StrCat("--header ", header, " is the file of -o, too"));
  }
  ASSIGN_OR_RETURN(files.name_, FunctionName(files.header_));
  return files;
}

absl::Status CompileFiles::CheckNothingIsLost(
    const std::vector<std::string>& inputs) const {
  if (!is_launcher()) {
    RETURN_IF_ERROR(CheckOutput(output_, inputs));
    return CheckOutput(header_, inputs);
  }
  for (const Launcher& launcher : Launchers()) {
    for (const char* extension : launcher.extensions) {
      RETURN_IF_ERROR(CheckOutput(output_ + extension, inputs));
    }
  }
  return absl::OkStatus();
}

absl::Status CompileFiles::CheckKind(std::string_view target_kind) const {
  const Launcher* launcher = FindLauncher(target_kind);
  if ((launcher != nullptr) == is_launcher()) return absl::OkStatus();
  const std::string kind(target_kind);
  if (launcher != nullptr) {
    return absl::InvalidArgumentError(absl::StrCat(
        "-o ", output_, ": a target of kind ", kind,
        " gives no library but files with the extensions ",
        ExtensionsOf(*launcher), "; give their name without an extension"));
  }
  return absl::InvalidArgumentError(
      absl::StrCat("-o ", output_, ": a target of kind ", kind,
                   " gives a library; the name must end in .so (shared "
                   "library) or .o (object file)"));
}

absl::StatusOr<std::vector<std::string>> CompileFiles::Write(
    const std::string& binary, const std::string& header_text) const {
  return WriteAllOrNone(
      {{output_, binary, /*executable=*/is_shared()}, {header_, header_text}});
}

absl::StatusOr<std::vector<std::string>> CompileFiles::WriteLauncher(
    std::string_view target_kind, const std::vector<HeaderFunction>& functions,
    const std::string& loadable) const {
  LauncherRequest request;
  request.file = std::filesystem::path(output_).filename().string();
  request.name = name_;
  request.functions = functions;
  request.loadable = loadable;
  ASSIGN_OR_RETURN(std::vector<LauncherFile> launcher,
                   FindLauncher(target_kind)->write(request));
  std::vector<OutputFile> files;
  for (LauncherFile& file : launcher) {
    files.push_back({output_ + file.extension, std::move(file.bytes)});
  }
  return WriteAllOrNone(files);
}

}  // namespace regatta::cli
