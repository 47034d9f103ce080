// Which OpenCL C is written.
#ifndef REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_VERSION_H_
#define REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_VERSION_H_

#include <string>

namespace regatta {

// The tool of opencl targets is the language: there is none below. The driver
// is the board's.
inline std::string OpenClVersion() { return "OpenCL C 1.2"; }

}  // namespace regatta

#endif  // REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_VERSION_H_
