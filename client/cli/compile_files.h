// The files that `regatta compile` writes. What -o names says which: a shared
// library or an object file for processors, each with a header, or for devices
// the files of a launcher (compiler/launcher).
#ifndef REGATTA_CLIENT_CLI_COMPILE_FILES_H_
#define REGATTA_CLIENT_CLI_COMPILE_FILES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "compiler/launcher/launcher.h"

namespace regatta::cli {

class CompileFiles {
 public:
  // `header`: --header, "" when it was not given. InvalidArgument for names
  // that give no form, one file twice, or a name that C cannot have.
  static absl::StatusOr<CompileFiles> Named(const std::string& output,
                                            const std::string& header);

  bool is_shared() const { return form_ == Form::kShared; }
  bool is_launcher() const { return form_ == Form::kLauncher; }
  const std::string& header() const { return header_; }
  // Of the C function, or of the library: after the header.
  const std::string& name() const { return name_; }

  // Neither a file in `inputs`, which the command reads ("" is none), nor a
  // tuning log may be replaced, whatever kind of device the target turns out to
  // be of. FailedPrecondition says which; call it before a log is opened.
  absl::Status CheckNothingIsLost(const std::vector<std::string>& inputs) const;

  // Whether the form is that of targets of this kind; InvalidArgument says
  // which it would be.
  absl::Status CheckKind(std::string_view target_kind) const;

  // Writes all of them or none and returns their paths. FailedPrecondition with
  // the path and the system's reason. REQUIRES: CheckKind was content.
  absl::StatusOr<std::vector<std::string>> Write(
      const std::string& binary, const std::string& header_text) const;
  // InvalidArgument too, where the launcher cannot be written for this code.
  absl::StatusOr<std::vector<std::string>> WriteLauncher(
      std::string_view target_kind,
      const std::vector<HeaderFunction>& functions,
      const std::string& loadable) const;

 private:
  enum class Form { kShared, kObject, kLauncher };
  CompileFiles() = default;

  Form form_ = Form::kShared;
  std::string output_;  // as it was given
  std::string header_;
  std::string name_;
};

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_COMPILE_FILES_H_
