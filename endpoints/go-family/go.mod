module bentpipe-endpoint-go-family

go 1.26.0
