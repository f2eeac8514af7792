# Compiler flags, sanitizers and the tools that make builds quick. Nothing here knows a target.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

set(VARVE_SANITIZE "" CACHE STRING "value of -fsanitize= for every target")
option(VARVE_FUZZ "build the fuzz targets with libFuzzer instead of the corpus runner" OFF)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1 -DNDEBUG")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g1")
set(CMAKE_CXX_FLAGS_SANITIZE "-O1 -g1")

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wimplicit-fallthrough -Wthread-safety -Werror)
# libstdc++ 12 uses its own deprecated names inside std::stable_sort; clang blames the caller.
add_compile_options(-Wno-deprecated-declarations)
# Answers must not depend on whether the compiler fused a multiply and an add.
add_compile_options(-ffp-contract=off -fno-omit-frame-pointer)
if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
  # popcnt and SSE4.2; wider code is chosen at run time where it pays.
  add_compile_options(-march=x86-64-v2)
endif()
if(VARVE_SANITIZE)
  add_compile_options(-fsanitize=${VARVE_SANITIZE})
  add_link_options(-fsanitize=${VARVE_SANITIZE})
  if(VARVE_SANITIZE MATCHES "undefined")
    add_compile_options(-fno-sanitize=vptr,alignment,null -fno-sanitize-recover=all)
  endif()
endif()
if(VARVE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The same source in another folder must hit the same cache entries.
add_compile_options(-ffile-prefix-map=${CMAKE_SOURCE_DIR}=.)
find_program(VARVE_CCACHE ccache)
if(VARVE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER
      ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${VARVE_CCACHE})
endif()
find_program(VARVE_MOLD mold)
if(VARVE_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
