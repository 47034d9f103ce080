// OpenCL extensions that generated code may make use of: features of a target,
// and what a board tells of its devices.
#ifndef REGATTA_COMPILER_MODULE_OPENCL_FEATURES_H_
#define REGATTA_COMPILER_MODULE_OPENCL_FEATURES_H_

namespace regatta {

inline constexpr const char* kOpenClFeatures[] = {"cl_khr_fp16", "cl_khr_fp64",
                                                  "cl_khr_integer_dot_product",
                                                  "cl_khr_subgroups"};

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_OPENCL_FEATURES_H_
